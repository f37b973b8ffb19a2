#!/usr/bin/env bash
# anthropic 2.14.0 (2026): `api_key` goes out as `Authorization: Bearer`, and no longer as `x-api-key`.
# Expected: Anthropic(api_key=K) sends `x-api-key: K`, and Anthropic(auth_token=T) sends `Authorization: Bearer T`; with
# both set, both.
# Seen: either one sends a bearer alone, and both together are a ValueError. A server or proxy that looks for x-api-key
# finds none, and one that tells the two apart by the header cannot.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check anthropic==2.14.0
cat > "$folder/headers.py" <<'PY'
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from anthropic import Anthropic

ANSWER = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
    "stop_sequence": None, "content": [{"type": "text", "text": "hi"}], "usage": {"input_tokens": 1, "output_tokens": 1},
}
seen = []


class Messages(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        seen.append((self.headers.get("x-api-key"), self.headers.get("authorization")))
        content = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Messages)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}"
for given in ({"api_key": "a-key"}, {"auth_token": "a-token"}):
    client = Anthropic(base_url=address, **given)
    client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}])
    print(f"{given}: x-api-key {seen[-1][0]}, authorization {seen[-1][1]}")
assert seen == [(None, "Bearer a-key"), (None, "Bearer a-token")], "other headers are sent"
try:
    Anthropic(base_url=address, api_key="a-key", auth_token="a-token")
except ValueError as error:
    print("both:", error)
else:
    raise AssertionError("both are taken")
PY
env -u ANTHROPIC_API_KEY -u ANTHROPIC_AUTH_TOKEN "$folder/venv/bin/python" "$folder/headers.py"
