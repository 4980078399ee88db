# the server itself, asked for a reward over HTTP
# reward: 0
cat > /tmp/ask.py <<'END'
import json
import urllib.request

FINISH = {"action": {"operation": "finish"}}
CREATE = {"jsonrpc": "2.0", "id": 1, "method": "openenv/session/create"}
for path, body in (("/reset", {}), ("/step", FINISH), ("/mcp", CREATE)):
    request = urllib.request.Request("http://127.0.0.1:8000" + path, json.dumps(body).encode())
    request.add_header("Content-Type", "application/json")
    try:
        print(urllib.request.urlopen(request, timeout=5).read())
    except OSError as error:
        print(error)
END
python3 /tmp/ask.py
