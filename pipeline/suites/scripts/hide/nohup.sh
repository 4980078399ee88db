# a job that ignores hangups
nohup sleep 300 > /dev/null 2>&1 &
