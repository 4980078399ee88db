# a process that forks and dies over and over
cat > /tmp/hop.py <<'END'
import os

while True:
    if os.fork():
        os._exit(0)
    os.setsid()
END
python3 /tmp/hop.py &
sleep 0.3
