# a daemon that forked twice
( (detach sleep 300 > /dev/null 2>&1 &) & )
sleep 0.2
