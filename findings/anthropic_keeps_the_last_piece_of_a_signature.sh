#!/usr/bin/env bash
# anthropic 2.14.0 (2026): of a signature that is streamed in pieces, only the last piece is kept.
# Expected: `signature_delta` adds to the block's signature, as `thinking_delta` adds to its thinking.
# Seen: it replaces it. A relay that cuts events anew has to send a signature in one event, or the client gives back a
# tail that no vendor takes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check anthropic==2.14.0
cat > "$folder/pieces.py" <<'PY'
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from anthropic import Anthropic

MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": None, "stop_sequence": None,
    "content": [], "usage": {"input_tokens": 1, "output_tokens": 1},
}


def delta(kind, name, text):
    return {"type": "content_block_delta", "index": 0, "delta": {"type": kind, name: text}}


EVENTS = [
    {"type": "message_start", "message": MESSAGE},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    delta("thinking_delta", "thinking", "let me "),
    delta("thinking_delta", "thinking", "think"),
    delta("signature_delta", "signature", "QUJD"),
    delta("signature_delta", "signature", "REVG"),
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]


class Messages(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in EVENTS:
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Messages)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = Anthropic(api_key="none", base_url=f"http://127.0.0.1:{server.server_port}")
with client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}]) as stream:
    block = stream.get_final_message().content[0]
print(f"thinking {block.thinking!r}, signature {block.signature!r}")
assert block.thinking == "let me think", "pieces of thinking are not added"
assert block.signature == "REVG", "pieces of a signature are not replaced"
PY
"$folder/venv/bin/python" "$folder/pieces.py"
