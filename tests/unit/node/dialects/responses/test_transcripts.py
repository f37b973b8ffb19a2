"""What exactly goes over the wire of the Responses API; the files read like a tutorial.

`read` has a body as input and prints the ask without what is at its default. `wish` has a body and, before it, one
line with the items of its history, and prints what is generated. `tell` has a body in its first line and one event
per further line; it prints the events of the stream, of whole responses only what is said in them (`whole`: all).
`again` has a stored response.
"""

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.event_grammar import Grammar
from smg_node.dialects.json_body import read_json
from smg_node.dialects.openai_errors import error_body
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.dialects.responses.events.numbered_events import NumberedEvent, frame
from smg_node.dialects.responses.events.stored_replay import replayed
from smg_node.dialects.responses.request.generate_request import generate_request
from smg_node.dialects.responses.request.reader import ResponsesReader
from support.answers.responses import items_from, teller_of
from support.answers.transcript_lines import event_of, told
from support.tools.transcripts import run_transcript

FOLDER = Path(__file__).parents[4] / "transcripts" / "responses"


def read(args: dict[str, str], given: str) -> str:
    options = ReaderOptions(unknown_parameters="reject" if "reject" in args else "forward")
    try:
        ask = ResponsesReader(options).read(read_json(given.encode()))
    except SmgError as error:
        return f"{error.status} {error_body(error).decode()}"
    lines = [f"input {item.document.decode()}" for item in ask.items]
    return "\n".join([*lines, *told("ask", replace(ask, items=()))])


def wish(_args: dict[str, str], given: str) -> str:
    history, _, body = given.partition("\n")
    ask = ResponsesReader(ReaderOptions()).read(read_json(body.encode()))
    items = [*items_from(json.loads(history)), *ask.items]
    try:
        return "\n".join(told("wish", generate_request(ask, items)))
    except SmgError as error:
        return f"{error.status} {error_body(error).decode()}"


def tell(args: dict[str, str], given: str) -> str:
    body, *lines = given.splitlines()
    ask = ResponsesReader(ReaderOptions()).read(read_json(body.encode()))
    more: dict[str, Any] = {"reasoning_events": "open"} if "open" in args else {}
    teller = teller_of(ask, seal=(lambda text: f"<{text}>") if "seal" in args else None, **more)
    events = [event_of(shlex.split(line)) for line in lines]
    Grammar(1).feed(events)
    said = teller.begin(queued="queued" in args)
    for event in events:
        said += teller.tell([event])
    ended = FinalStatus.cancelled() if "cancel" in args else teller.outcome
    assert ended is not None
    said += teller.close(ended.at(9))
    return printed(said, whole="whole" in args)


def again(args: dict[str, str], given: str) -> str:
    return printed(replayed(given.strip().encode()), whole="whole" in args)


def printed(said: Sequence[NumberedEvent], *, whole: bool) -> str:
    if whole:
        return "".join(frame(one).decode() for one in said)
    return "\n".join(shortened(json.loads(one.data)) for one in said)


def shortened(row: dict[str, Any]) -> str:
    number, kind = row.pop("sequence_number"), row.pop("type").removeprefix("response.")
    response = row.get("response")
    if response is not None:
        shown = ("status", "error", "incomplete_details", "usage")
        row["response"] = {key: response[key] for key in shown if response.get(key) is not None}
        row["response"]["output"] = [item["id"][:3] for item in response["output"]]
    spelled = json.dumps(row, ensure_ascii=False)
    return f"{number} {kind} {spelled}"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_the_wire_says_what_is_written(path: Path) -> None:
    run_transcript(path, {"read": read, "wish": wish, "tell": tell, "again": again})


def test_there_are_transcripts() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} >= {"asks", "streams", "refusals"}
