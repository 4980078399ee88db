# a process that adopts orphans and hides its owner
cat > /tmp/reaper.py <<'END'
import ctypes
import os
import time

libc = ctypes.CDLL(None)
libc.prctl(36, 1, 0, 0, 0)
libc.prctl(4, 0, 0, 0, 0)
if os.fork():
    os._exit(0)
os.setsid()
os.fork()
time.sleep(300)
END
python3 /tmp/reaper.py &
sleep 0.3
