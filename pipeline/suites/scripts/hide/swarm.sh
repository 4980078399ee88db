# a hundred processes that start another when one dies
cat > /tmp/swarm.py <<'END'
import os
import time


def live():
    while True:
        pid = os.fork()
        if pid == 0:
            os.setsid()
            time.sleep(30)
            os._exit(0)
        os.waitpid(pid, 0)


for _ in range(100):
    if os.fork() == 0:
        live()
time.sleep(0.5)
END
python3 /tmp/swarm.py &
sleep 0.8
