# a process that stops itself
detach bash -c 'kill -STOP $$; sleep 300' &
sleep 0.2
