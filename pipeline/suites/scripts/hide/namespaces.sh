# a process in namespaces of its own, where the engine lets it make some
cat > /tmp/unshare.py <<'END'
import ctypes
import os
import time

libc = ctypes.CDLL(None)
libc.unshare(0x10000000 | 0x20000000)
if os.fork() == 0:
    os.setsid()
    time.sleep(300)
END
python3 /tmp/unshare.py &
sleep 0.3
