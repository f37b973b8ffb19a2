"""Responses without tools of ours load nothing of them, to the last module."""

import subprocess
import sys
from textwrap import dedent

_SCRIPT = """
    import sys
    from dataclasses import replace
    from random import Random

    from smg_node.core.generation.events import Begin, BlockEnd, BlockStart, Delta, End, Finish, Usage
    from smg_node.dialects.options import ReaderOptions
    from smg_node.dialects.responses.events.presenter import ResponsePresenter
    from smg_node.dialects.responses.events.stored_replay import replayed
    from smg_node.dialects.responses.events.orphan_ending import closing
    from smg_node.dialects.responses.request.generate_request import generate_request
    from smg_node.dialects.responses.request.reader import ResponsesReader
    import smg_node.history.service.response_service

    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "1"}
    body = {"model": "m", "input": [call, output], "tools": [{"type": "function", "name": "f"}]}
    ask = ResponsesReader(ReaderOptions(tool_servers=True)).read(body)
    generate_request(ask, ask.items)
    teller = ResponsePresenter(
        ask, response_id="resp_1", thread="5eed5eed5eed", created_s=1, now_ms=1, chance=Random(1)
    )
    row = teller.response()
    told = teller.begin()
    told += teller.tell(
        [Begin("1", "m", 1, 1), BlockStart(0, 0, "text"), Delta(0, 0, "a", 1), BlockEnd(0, 0, "text", "a")]
    )
    closing(row, told)
    told += teller.tell([Finish(0, "stop"), Usage(1, 1, 0), End()])
    teller.close(teller.outcome.at(9))
    replayed(teller.response())
    ours = [name for name in sys.modules if ".served" in name or "tool_serving" in name or "approval" in name]
    print(ours)
"""


def test_what_no_request_names_is_not_loaded() -> None:
    command = [sys.executable, "-c", dedent(_SCRIPT)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.strip() == "[]"
