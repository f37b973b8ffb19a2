#!/usr/bin/env bash
# google-genai 3.6.1 (2026): a thought's signature that came in standard base64 goes back in the URL-safe alphabet.
# Expected: what the model sent as `thoughtSignature` stands in the next request as it was, character by character.
# Seen: `+` and `/` have become `-` and `_`. Both are the same bytes to Google's own servers; a gateway that compares or
# looks up signatures as text does not know its own again.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check google-genai==3.6.1
cat > "$folder/signatures.py" <<'PY'
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from google import genai
from google.genai import types

SENT = "++///g=="
PARTS = [{"text": "hm", "thought": True}, {"text": "hello", "thoughtSignature": SENT}]
asked = []


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        candidate = {"index": 0, "content": {"role": "model", "parts": PARTS}, "finishReason": "STOP"}
        content = json.dumps({"candidates": [candidate]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}"
client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=address))
chat = client.chats.create(model="m")
chat.send_message("Say hello")
chat.send_message("Again")
(back,) = [
    part["thoughtSignature"] for turn in asked[1]["contents"] for part in turn["parts"] if "thoughtSignature" in part
]
print(f"sent {SENT}, given back {back}")
assert back == "--___g==", "the signature is given back otherwise"
PY
"$folder/venv/bin/python" "$folder/signatures.py"
