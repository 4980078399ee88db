# a file that is open, deleted and written until the end
cat > /tmp/late.py <<'END'
import os
import sys
import time

if os.fork():
    os._exit(0)
os.setsid()
with open(sys.argv[1], "r+b") as file:
    while True:
        file.seek(0)
        file.write(b"X")
        file.flush()
        time.sleep(0.001)
END
python3 /tmp/late.py "$file" &
sleep 0.2
