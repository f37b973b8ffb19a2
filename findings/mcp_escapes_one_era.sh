#!/usr/bin/env bash
# mcp 2.3.0 (2026): the same server answers the same call in ASCII in one era of the protocol and in UTF-8 in the other.
# Expected: a tool that returns Chinese is answered in UTF-8 by both eras, as JSON texts between systems are (RFC 8259).
# Seen: in 2026-07-28 each character beyond ASCII is an escape of six bytes (twelve for an emoji); in 2025-11-25 it is
# three. So the answer has twice the size, and a client with a limit of bytes fails in the newer era only.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check mcp==2.3.0
cat > "$folder/eras.py" <<'PY'
import json
import socket
import threading
import urllib.request

import uvicorn
from mcp.server.mcpserver import MCPServer

server = MCPServer("s")


@server.tool()
def say() -> str:
    return "言葉" * 500


listening = socket.create_server(("127.0.0.1", 0))
running = uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error"))
threading.Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True).start()
URL = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
META = "io.modelcontextprotocol/"


def ask(body, **headers):
    both = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    whole = {**both, **{name.replace("_", "-"): value for name, value in headers.items()}}
    request = urllib.request.Request(URL, json.dumps(body).encode(), whole)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read(), answer.headers.get("mcp-session-id")


call = {"jsonrpc": "2.0", "id": "1", "method": "tools/call", "params": {"name": "say", "arguments": {}}}
hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
_, session = ask({"jsonrpc": "2.0", "id": "0", "method": "initialize", "params": hello})
older = {"mcp_session_id": session, "mcp_protocol_version": "2025-11-25"}
ask_noted = {"jsonrpc": "2.0", "method": "notifications/initialized"}
ask(ask_noted, **older)
old, _ = ask(call, **older)
meta = {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {}}
call["params"]["_meta"] = meta
new, _ = ask(call, mcp_protocol_version="2026-07-28", mcp_method="tools/call", mcp_name="say")
PLAIN, ESCAPED = "言".encode(), b"\\u8a00"
for era, answer in (("2025-11-25", old), ("2026-07-28", new)):
    print(f"{era}: {len(answer)} bytes, in UTF-8: {PLAIN in answer}, by escapes: {ESCAPED in answer}")
assert PLAIN in old and ESCAPED not in old, "the older era is escaped too"
assert PLAIN not in new and ESCAPED in new, "the newer era is in UTF-8"
PY
"$folder/venv/bin/python" "$folder/eras.py"
