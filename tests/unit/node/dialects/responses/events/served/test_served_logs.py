"""Logs and stored responses with runs of tools: told again, closed wherever they end, and read while others write them."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Event, RunStart
from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.dialects.responses.events.orphan_ending import (
    LogReplay,
    OrphanEnding,
    closing,
    ended_object,
)
from smg_node.dialects.responses.events.partial_response import PartialResponse
from smg_node.dialects.responses.events.served.served_events import INTERRUPTED
from smg_node.dialects.responses.events.stored_replay import replayed
from support.answers.generations import merged, text, types, whole
from support.answers.responses import ask_of, checked, decoded, teller_of, told_whole
from support.answers.served_streams import RESULT, TIMES, owned, run, served_streams

DIED = FinalStatus.failed(SmgError(ErrorKind.UPSTREAM_FAILED, "the node that made it died")).at(9)
INCLUDE = ["web_search_call.action.sources", "file_search_call.results"]
ENDED = ("completed", "failed", None)
Row = dict[str, Any]


def told_and_row(events: Sequence[Event], **ask: Any) -> tuple[list[NumberedEvent], bytes]:
    """Return the log of a response, without its end, and its row."""
    teller = teller_of(ask_of(**ask))
    row = teller.response()
    told = [*teller.begin(), *teller.tell(events)]
    assert teller.outcome is not None
    return [*told, *teller.close(teller.outcome.at(9))][:-1], row


def buried(row: bytes, log: Sequence[NumberedEvent]) -> OrphanEnding:
    """Close a log as an adopter does; check all that must hold of it."""
    left = closing(row, log)
    final = ended_object(row, left.output, DIED)
    data = b'{"type":"response.failed","sequence_number":%d,"response":%b}' % (left.next, final)
    stream = [*log, *left.events, NumberedEvent(left.next, "response.failed", data)]
    assert checked(stream).status == "failed"
    fold = LogReplay()
    fold.feed(log)
    before, after = (
        {item.id: item.document for item in items} for items in (fold.done, left.output)
    )
    assert before.items() <= after.items()
    assert closing(row, [*log, *left.events]) == OrphanEnding([], left.output, left.next)
    return left


@settings(max_examples=10, deadline=None)
@given(served_streams())
def test_a_log_cut_at_any_event_is_closed(events: list[Event]) -> None:
    told, row = told_and_row(events)
    for cut in range(len(told) + 1):
        buried(row, told[:cut])


def test_a_run_whose_node_died_has_failed_and_says_that_it_may_have_run() -> None:
    told, row = told_and_row(whole(owned(), [RunStart(0, 0)], text("Hi", block=1), run()[2:]))
    words = types(told)
    left = buried(row, told[: words.index("content_part.added")])
    call, message = (json.loads(item.document) for item in left.output)
    assert call["error"] == {"type": "http_error", "code": 502, "message": INTERRUPTED}
    assert (call["status"], call["output"]) == ("failed", None)
    assert message["status"] == "incomplete"
    assert "mcp_call.failed" in types(left.events)


def test_a_call_whose_arguments_were_cut_by_a_death_is_incomplete() -> None:
    told, row = told_and_row(whole(owned(TIMES, '{"zone"', ': "UTC"}'), run()))
    cut = types(told).index("mcp_call_arguments.delta") + 1
    [call] = buried(row, told[:cut]).output
    assert json.loads(call.document)["arguments"] == '{"zone"'
    assert (call.status, json.loads(call.document)["error"]) == ("incomplete", None)


@pytest.mark.parametrize("word", ["completed", "failed"])
def test_what_was_said_of_a_run_is_not_said_twice(word: str) -> None:
    result = RESULT
    told, row = told_and_row(whole(owned(), run(result=result)))
    at = types(told).index("mcp_call.completed")
    log = [
        *told[:at],
        told[at]._replace(type=f"response.mcp_call.{word}", data=_as(told[at], word)),
    ]
    left = buried(row, log)
    assert types(left.events) == ["output_item.done"]


def _as(one: NumberedEvent, word: str) -> bytes:
    return json.dumps({**json.loads(one.data), "type": f"response.mcp_call.{word}"}).encode()


@settings(max_examples=100, deadline=None)
@given(served_streams())
def test_what_is_stored_is_told_again(events: list[Event]) -> None:
    told = told_whole(events, ask_of(include=INCLUDE))
    data = told[-1].data
    document = data[data.index(b'"response":') + len(b'"response":') : -1]
    again = replayed(document)
    assert checked(again) == checked(told)
    first, second = _by_item(told), _by_item(again)
    assert first.keys() == second.keys()
    for item_id, rows in first.items():
        item = rows[-1]["item"]
        # How far one came that was cut is not kept, and an image has no word for that.
        over = ("completed", None) if item["type"] == "image_generation_call" else ENDED
        if item.get("status") in over:
            assert _telling(second[item_id]) == _telling(rows)
        assert second[item_id][-1] == rows[-1]


def _telling(rows: Sequence[Row]) -> list[Row]:
    """Return the events of an item but deltas that say nothing."""
    return [row for row in rows if row.get("delta") != "" or "arguments" in row["type"]]


def _by_item(told: Sequence[NumberedEvent]) -> dict[str, list[Row]]:
    found: dict[str, list[NumberedEvent]] = {}
    ids: dict[int, str] = {}
    for one in told:
        row = decoded([one])[0]
        if "output_index" in row:
            if "item" in row:
                ids[row["output_index"]] = row["item"]["id"]
            found.setdefault(ids[row["output_index"]], []).append(one)
    return {item_id: merged(events) for item_id, events in found.items()}


@settings(max_examples=50, deadline=None)
@given(served_streams())
def test_who_listens_sees_finished_items_in_their_order(events: list[Event]) -> None:
    told, row = told_and_row(events)
    partial = PartialResponse(row)
    order: dict[str, int] = {}
    for one in told:
        partial.hear([one])
        said = json.loads(one.data)
        if one.type == "response.output_item.done":
            order[said["item"]["id"]] = said["output_index"]
        shown = [item["id"] for item in json.loads(partial.body())["output"]]
        assert shown == sorted(order, key=lambda item_id: order[item_id])
