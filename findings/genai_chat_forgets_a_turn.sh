#!/usr/bin/env bash
# google-genai 3.6.1 (2026): a chat forgets a whole turn when one frame of its stream has no candidate.
# Expected: a streamed frame that only carries usage or nothing (`{"candidates": []}`), between two frames of text, leaves
# the text and the chat's history as they are; `generate_content_stream` takes it.
# Seen: the text arrives whole and nothing is raised, but the curated history that the next turn sends has neither the
# question nor the answer.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check google-genai==3.6.1
cat > "$folder/chat.py" <<'PY'
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from google import genai
from google.genai import types


def frame(text, reason=None):
    candidate = {"index": 0, "content": {"role": "model", "parts": [{"text": text}]}}
    return {"candidates": [candidate | ({"finishReason": reason} if reason else {})]}


class Model(BaseHTTPRequestHandler):
    empty = False

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        frames = [frame("Hel"), frame("lo", "STOP")]
        if Model.empty:
            frames.insert(1, {"candidates": []})
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for one in frames:
            self.wfile.write(b"data: " + json.dumps(one).encode() + b"\r\n\r\n")

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}"
client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=address))
kept = {}
for empty in (False, True):
    Model.empty = empty
    chat = client.chats.create(model="m")
    text = "".join(part.text or "" for part in chat.send_message_stream("Say hello"))
    kept[empty] = len(chat.get_history(curated=True))
    print(f"with a frame without candidates: {empty}; text {text!r}; turns kept: {kept[empty]}")
    assert text == "Hello", "the text differs"
assert kept[False] >= 2, "a chat keeps no turns at all"
assert kept[True] == 0, "the turn is kept now"
PY
"$folder/venv/bin/python" "$folder/chat.py"
