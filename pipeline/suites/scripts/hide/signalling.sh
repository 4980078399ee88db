# processes that send every thread of the server signals while it ends them
cat > /tmp/signals.py <<'END'
import ctypes
import signal

send = ctypes.CDLL(None).syscall
while True:
    for thread in range(1, 24):
        send(234, 1, thread, signal.SIGTERM)
END
for _ in 1 2 3 4; do python3 /tmp/signals.py > /dev/null 2>&1 & done
sleep 0.5
