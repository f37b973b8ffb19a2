"""Requests that ask for no tools on this node's side load nothing of them, whatever node they come to."""

import json
import subprocess
import sys

SCRIPT = """
import sys
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.dialect import Unknown
from smg_node.dialects.messages.dialect import MessagesDialect
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.thought_seals import PlainVault, ThoughtSeals

options = ReaderOptions(tool_servers=True)
messages = MessagesDialect(options, ThoughtSeals(PlainVault()), lambda: 0.0)
tool = {"name": "f", "input_schema": {"type": "object"}}
said = [
    {"role": "user", "content": "a"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "x", "name": "f", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]},
]
reading = messages.read({"model": "m", "max_tokens": 5, "messages": said, "tools": [tool]})
messages.presenter(reading)
chat = ChatDialect(options)
function = {"type": "function", "function": {"name": "f"}}
body = {"model": "m", "messages": said[:1], "tools": [function], "tool_choice": "auto"}
chat.presenter(chat.read(body, Unknown()))
print(__import__("json").dumps(sorted(sys.modules)))
"""


def test_requests_without_tools_of_ours_load_nothing_of_them() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(json.loads(ran.stdout))
    assert "smg_node.dialects.messages.presenter" in loaded
    served = {
        name
        for name in loaded
        if ".tool_runs." in name or ".served" in name or name.endswith(".tool_serving")
    }
    # Names of blocks, by which a reader tells them from others.
    assert served == {"smg_node.dialects.messages.tool_runs.block_names"}
