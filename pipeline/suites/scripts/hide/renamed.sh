# a process under the name of the server
bash -c 'exec -a /usr/bin/python3 sleep 300' &
