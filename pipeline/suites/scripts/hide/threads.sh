# a process whose first thread has ended
cat > /tmp/thread.py <<'END'
import ctypes
import os
import threading
import time

if os.fork():
    os._exit(0)
os.setsid()
threading.Thread(target=time.sleep, args=(300,)).start()
ctypes.CDLL(None).pthread_exit(None)
END
python3 /tmp/thread.py &
sleep 0.3
