"""Whatever a generation says and however it was cut: the stream is whole, and so is the object at any moment."""

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import Response

from smg_node.core.generation.events import (
    BlockEnd,
    Delta,
    Event,
)
from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.dialects.responses.events.stored_replay import replayed
from smg_node.dialects.responses.items.item_document import item_of, items_of
from smg_node.dialects.responses.request.output_parameters import LOGPROBS
from support.answers.generations import BROKEN, merged
from support.answers.grammatical_streams import streams
from support.answers.responses import (
    ask_of,
    checked,
    decoded,
    items_from,
    teller_of,
    told_whole,
)

# ── At any moment ────────────────────────────────────────────────────────────


@settings(max_examples=60, deadline=None)
@given(streams(kinds=("text", "reasoning", "call"), failing=False), st.data())
def test_the_object_is_whole_at_any_moment(events: list[Event], data: st.DataObject) -> None:
    teller = teller_of()
    told = teller.begin()
    cut = data.draw(st.integers(0, len(events)))
    told += teller.tell(events[:cut])
    snapshot = Response.model_validate_json(teller.response(), strict=True)
    assert snapshot.status == "in_progress"
    said = "".join(e.text for e in events[:cut] if isinstance(e, Delta))
    kept = "".join(str(_text_of(item.document)) for item in _items(teller.response()))
    assert said == kept or _has_empty_call(events[:cut])
    told += teller.close(FinalStatus.failed(BROKEN).at(9))
    response = checked(told)
    assert (response.status, told[-1].type) == ("failed", "response.failed")
    assert sum(one.type in TERMINAL for one in told) == 1


TERMINAL = ("response.completed", "response.incomplete", "response.failed")


def _items(response: bytes) -> Any:
    return items_of(json.dumps(json.loads(response)["output"]).encode())


def _text_of(document: bytes) -> str:
    values = json.loads(document)
    if "arguments" in values:
        return str(values["arguments"])
    return "".join(part["text"] for part in values["content"])


def _has_empty_call(events: list[Event]) -> bool:
    return any(isinstance(e, BlockEnd) and e.kind == "call" and not e.text for e in events)


@settings(max_examples=60, deadline=None)
@given(streams(kinds=("text", "reasoning", "call"), failing=True))
def test_whatever_breaks_is_closed(events: list[Event]) -> None:
    told = told_whole(events)
    response = checked(told)
    assert response.status == "failed"
    statuses = [json.loads(one.data)["item"]["status"] for one in told if "item.done" in one.type]
    assert all(status == "completed" for status in statuses[:-1])
    assert set(statuses[-1:]) <= {"incomplete", "completed"}


@settings(max_examples=60, deadline=None)
@given(streams(kinds=("text", "reasoning", "call"), logprobs=True), st.booleans())
def test_a_stream_of_any_shape_is_what_the_sdk_expects(
    events: list[Event], wants_logprobs: bool
) -> None:
    ask = ask_of(include=[LOGPROBS]) if wants_logprobs else ask_of()
    teller = teller_of(ask)
    told = [*teller.begin(), *teller.tell(events)]
    assert teller.outcome is not None
    told += teller.close(teller.outcome.at(9))
    checked(told)
    documents = [item.document for item in teller.output()]
    assert [item_of(document).document for document in documents] == documents
    # What came out can go in again, byte for byte.
    assert [i.document for i in items_from([json.loads(d) for d in documents])] == documents
    assert json.loads(teller.response()) == decoded(told)[-1]["response"]


@settings(max_examples=60, deadline=None)
@given(streams(kinds=("text", "reasoning", "call"), logprobs=True), st.data())
def test_how_text_was_cut_changes_nothing_but_the_deltas(
    events: list[Event], data: st.DataObject
) -> None:
    other: list[Event] = []
    for event in events:
        if not isinstance(event, Delta) or not event.text:
            other.append(event)
            continue
        at = data.draw(st.integers(0, len(event.text)))
        pieces = (event.text[:at], event.text[at:])
        other += [Delta(event.choice, event.block, piece, event.tokens) for piece in pieces]
    assert merged(told_whole(other)) == merged(told_whole(events))


# ── Told again ───────────────────────────────────────────────────────────────


@settings(max_examples=60, deadline=None)
@given(streams(kinds=("text", "reasoning", "call"), failing=False))
def test_what_is_stored_is_told_again(events: list[Event]) -> None:
    told = told_whole(events)
    document = msgspec_response(told)
    again = replayed(document)
    assert checked(again) == checked(told)
    first = merged(told)
    assert [row for row in merged(again)[2:] if row] == [
        row for row in first[2:] if row.get("delta") != "" or "arguments" in row["type"]
    ]


def msgspec_response(told: Sequence[NumberedEvent]) -> bytes:
    data = told[-1].data
    return data[data.index(b'"response":') + len(b'"response":') : -1]
