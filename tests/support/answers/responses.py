"""Responses for tests: asks, generations told, one item of every type, and the official SDK's opinion."""

import json
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from hypothesis import strategies as st
from openai import omit
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from smg_node.core.generation.events import Event
from smg_node.core.json_cursor import Cursor, Problems
from smg_node.dialects.openai.part_limits import PartCounter
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.dialects.responses.events.presenter import ResponsePresenter
from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.dialects.responses.request.input_items import read_items
from smg_node.dialects.responses.request.reader import ResponsesReader
from smg_node.dialects.responses.request.response_request import ResponseRequest

THREAD = "5eed5eed5eed"
RESPONSE_ID = f"resp_0198c0ffee00{THREAD}0123456789abcdef01234567"
NOW_MS = 0x0198_C0FF_EE00

RUNNING = (
    "mcp_call", "web_search_call", "file_search_call", "code_interpreter_call",
    "image_generation_call", "tool_search_call",
)  # fmt: skip
"""Items of calls that a node runs: several are open at once."""

_events: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)


def ask_of(options: ReaderOptions | None = None, /, **parameters: Any) -> ResponseRequest:
    body = {"model": "m", "input": "hi", **parameters}
    return ResponsesReader(options or ReaderOptions()).read(body)


def items_from(rows: Sequence[Any]) -> tuple[ItemDoc, ...]:
    """Return the items of an `input`; raises what is wrong with it."""
    problems = Problems()
    items = read_items(
        Cursor({"input": list(rows)}, problems), "input", PartCounter(ReaderOptions())
    )
    problems.check()
    return items


def teller_of(ask: ResponseRequest | None = None, **more: Any) -> ResponsePresenter:
    return ResponsePresenter(
        ask or ask_of(),
        response_id=RESPONSE_ID,
        thread=THREAD,
        created_s=5,
        now_ms=NOW_MS,
        chance=Random(7),
        **more,
    )


def told_whole(
    events: Iterable[Event], ask: ResponseRequest | None = None, **more: Any
) -> list[NumberedEvent]:
    """Return a whole response: begun, told event by event, closed with what it came to."""
    teller = teller_of(ask, **more)
    told = teller.begin()
    for event in events:
        told += teller.tell([event])
    assert teller.outcome is not None
    return told + teller.close(teller.outcome.at(9))


def decoded(told: Iterable[NumberedEvent]) -> list[dict[str, Any]]:
    return [json.loads(one.data) for one in told]


def checked(told: Sequence[NumberedEvent]) -> Response:
    """Return the last whole object; every event is what the SDK calls one, and its accumulator agrees."""
    state: Any = ResponseStreamState(input_tools=omit, text_format=omit)
    open_items: dict[int, str] = {}
    last: Any = None
    for number, one in enumerate(told):
        event = _events.validate_json(one.data, strict=True)
        assert (event.type, event.sequence_number) == (one.type, one.sequence)
        assert one.sequence == number
        assert b"\n" not in one.data
        assert b"\r" not in one.data
        state.handle_event(event)
        raw = json.loads(one.data)
        if event.type == "response.output_item.added":
            assert raw["output_index"] == len(open_items)
            # Only what runs here goes on beside later items, and what it finds may come beside any.
            found = raw["item"]["type"] == "tool_search_output"
            assert found or set(open_items.values()) <= {"", *RUNNING}
            open_items[raw["output_index"]] = raw["item"]["type"]
        if event.type == "response.output_item.done":
            assert open_items[raw["output_index"]] == raw["item"]["type"]
            open_items[raw["output_index"]] = ""
        last = raw
    assert not any(open_items.values())
    done = [json.loads(t.data) for t in told if t.type == "response.output_item.done"]
    done.sort(key=lambda row: int(row["output_index"]))
    assert last["response"]["output"] == [row["item"] for row in done]
    return Response.model_validate_json(json.dumps(last["response"]), strict=True)


TEXT = {"type": "input_text", "text": "see"}
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "auto"}
FILE = {"type": "input_file", "file_data": "data:text/plain;base64,AA==", "filename": "a.txt"}
AUDIO = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}
SAID = {"type": "output_text", "text": "ok", "annotations": [], "logprobs": []}

SAMPLES: dict[str, dict[str, Any]] = {
    "message": {"role": "user", "content": [TEXT, IMAGE, FILE], "status": "completed"},
    "reasoning": {
        "summary": [{"type": "summary_text", "text": "short"}],
        "content": [{"type": "reasoning_text", "text": "long"}],
        "encrypted_content": "blob",
    },
    "function_call": {
        "call_id": "c1", "name": "f", "arguments": "{}", "namespace": "n", "status": "completed",
    },
    "function_call_output": {"call_id": "c1", "output": "1", "status": "completed"},
    "custom_tool_call": {"call_id": "c2", "name": "g", "input": "x", "status": "completed"},
    "custom_tool_call_output": {"call_id": "c2", "output": [TEXT], "status": "completed"},
    "compaction": {"encrypted_content": "blob"},
    "mcp_list_tools": {"server_label": "s", "tools": [{"name": "t", "input_schema": {}}]},
    "mcp_call": {
        "server_label": "s", "name": "t", "arguments": "{}", "output": "o", "status": "completed",
    },
    "mcp_approval_request": {"server_label": "s", "name": "t", "arguments": "{}"},
    "mcp_approval_response": {"approval_request_id": "mcpr_1", "approve": True, "reason": "ok"},
    "web_search_call": {
        "action": {"type": "search", "query": "q", "queries": ["q"]}, "status": "completed",
    },
    "file_search_call": {"queries": ["q"], "results": None, "status": "completed"},
    "code_interpreter_call": {
        "code": "1", "container_id": "c", "outputs": None, "status": "completed",
    },
    "image_generation_call": {"result": None, "status": "completed"},
    "computer_call": {
        "call_id": "c3", "action": {"type": "wait"}, "pending_safety_checks": [],
        "status": "completed",
    },
    "computer_call_output": {
        "call_id": "c3", "output": {"type": "computer_screenshot", "image_url": "data:,"},
        "status": "completed",
    },
    "local_shell_call": {
        "call_id": "c4", "action": {"type": "exec", "command": ["ls"], "env": {}},
        "status": "completed",
    },
    "local_shell_call_output": {"call_id": "c4", "output": "a", "status": "completed"},
    "shell_call": {
        "call_id": "c5", "action": {"commands": ["ls"]}, "environment": None, "status": "completed",
    },
    "shell_call_output": {
        "call_id": "c5", "max_output_length": None, "status": "completed",
        "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
    },
    "apply_patch_call": {
        "call_id": "c6", "operation": {"type": "delete_file", "path": "a"}, "status": "completed",
    },
    "apply_patch_call_output": {"call_id": "c6", "status": "completed", "output": "done"},
    "tool_search_call": {
        "arguments": {"q": 1}, "call_id": "c7", "execution": "client", "status": "completed",
    },
    "tool_search_output": {
        "call_id": "c7", "execution": "client", "tools": [], "status": "completed",
    },
    "additional_tools": {"role": "developer", "tools": []},
    "configuration_update": {"reasoning": {"effort": "low"}},
    "program": {"call_id": "c8", "code": "x", "fingerprint": "f"},
    "program_output": {"call_id": "c8", "result": "1", "status": "completed"},
    "acme:note": {"anything": [1, 1.5, None, {"deep": "x"}]},
}  # fmt: skip
"""What an item of every type holds when nothing is left out, but its type and id."""

_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\u2028\u2029\u0085\0\n"))
)
json_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
_unknown_keys = st.sampled_from(["x_a", "x_b", "metadata"])
_ids = st.none() | st.sampled_from(["msg_a", "rs_b-C", "mcpl_" + "_0" * 25])


@st.composite
def item_rows(draw: st.DrawFn) -> dict[str, Any]:
    """An item as a client may send it: any type, unknown keys, an id or none, keys in any order."""
    kind = draw(st.sampled_from(sorted(SAMPLES)))
    row = {"type": kind, **SAMPLES[kind]}
    if draw(st.booleans()):
        row[draw(_unknown_keys)] = draw(json_values)
    item_id = draw(_ids)
    if item_id is not None:
        row["id"] = item_id
    turn = draw(st.integers(0, len(row) - 1))
    keys = list(row)
    return {key: row[key] for key in keys[turn:] + keys[:turn]}
