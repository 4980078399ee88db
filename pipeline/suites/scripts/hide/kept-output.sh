# a process that keeps the pipe of its output
detach sleep 300 &
echo ok
