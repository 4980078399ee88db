# a process in a session of its own
detach sleep 300 &
sleep 0.2
