"""Judges that overlook nothing: whatever is taken out of what is right, or made wrong in it, is found."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from smg_node.core.generation.events import Event
from smg_node.dialects.responses.events.numbered_events import DONE, frame
from support.answers.responses import SAMPLES, ask_of, told_whole
from support.clients.open_responses_schema import SHAPES, wrong_with, wrong_with_event
from support.clients.sdk_validation import EVENTS, opinion_of_event, opinion_of_response
from support.clients.stream_judge import frames_of, wrong_with_stream
from support.history.history_world import begin, block, finish


def generation() -> list[Event]:
    call = block(2, "call", '{"a":1}', '{"a"', ":1}", name="f", call_id="c1")
    return [
        begin(),
        *block(0, "reasoning", "I think.", "I ", "think."),
        *block(1, "text", "So be it.", "So ", "be it."),
        *call,
        *finish("tool_calls"),
    ]


def told(*, open_names: bool = False) -> list[bytes]:
    more = {"reasoning_events": "open"} if open_names else {}
    ask = ask_of(
        tools=[{"type": "function", "name": "f"}], reasoning={"effort": "low"}, instructions="x"
    )
    return [one.data for one in told_whole(generation(), ask, **more)]


def events() -> dict[str, dict[str, Any]]:
    """Return one event of each type that there is in a stream."""
    return {json.loads(one)["type"]: json.loads(one) for one in told(open_names=True)}


def keys_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to everything in a document."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in inside:
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from keys_of(inner, (*path, key))


def changed(document: Any, path: tuple[Any, ...], *change: Any) -> Any:
    """Return a copy without what is at this place, or with something else there."""
    copied = copy.deepcopy(document)
    inside = copied
    for key in path[:-1]:
        inside = inside[key]
    if change:
        inside[path[-1]] = change[0]
    else:
        del inside[path[-1]]
    return copied


FREE = {"user", "conversation", "cache_write_tokens", "logprobs", "metadata", "verbosity"}
"""Nobody demands these, or asks what is in them."""


def is_free(path: tuple[Any, ...], document: Any) -> bool:
    inside = document
    for key in path[:-1]:
        inside = inside[key]
    thought = isinstance(inside, dict) and inside.get("type") == "reasoning"
    return path[-1] in FREE or isinstance(path[-1], int) or (thought and path[-1] in OF_A_THOUGHT)


OF_A_THOUGHT = ("status", "content")


def test_what_we_tell_is_right_by_the_open_schema() -> None:
    for event in told(open_names=True):
        assert wrong_with_event(json.loads(event)) == []


@pytest.mark.parametrize("kind", events())
def test_nothing_can_be_missing_from_an_event_or_be_nothing(kind: str) -> None:
    event = events()[kind]
    places = [path for path in keys_of(event) if not is_free(path, event)]
    assert [path for path in places if not wrong_with_event(changed(event, path))] == []
    odd = [path for path in places if not wrong_with_event(changed(event, path, {"odd": 1}))]
    # The parameters of a tool are any object.
    assert {path[-1] for path in odd} <= {"parameters"}


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_has_a_type_of_its_own_or_keys_that_must_be_there(name: str) -> None:
    assert wrong_with(name if name[0].isupper() else "Response", {}) != []
    assert any(not field.may_be_absent for field in SHAPES[name])


def test_the_sdk_knows_all_events_of_the_open_schema_but_those_of_thoughts() -> None:
    known = {name for name in SHAPES if name.startswith("response.")}
    assert known - EVENTS.keys() == {"response.reasoning.delta", "response.reasoning.done"}


@pytest.mark.parametrize(
    ("value", "objection"),
    [
        ({"type": "message"}, "Item.id: is missing"),
        ({"type": "message", "phase": None}, "Item.phase: None is not commentary|final_answer"),
        ({"type": "nobody"}, "Item: no Item is of type 'nobody'"),
        ({"type": ["message"]}, "Item: no Item is of type ['message']"),
        ("text", "Item: no Item is of type None"),
    ],
)
def test_an_objection_names_its_place(value: Any, objection: str) -> None:
    assert objection in wrong_with("Item", value)


@pytest.mark.parametrize("kind", ["message", "function_call", "function_call_output", "compaction"])
def test_items_that_clients_send_are_right_by_the_open_schema(kind: str) -> None:
    assert wrong_with("Item", {"type": kind, "id": "x_1", **SAMPLES[kind]}) == []


# ── The SDK, and streams as a whole ──────────────────────────────────────────


def wire(events: list[bytes]) -> tuple[bytes, ...]:
    return (*events, b"[DONE]")


def test_a_whole_stream_is_right() -> None:
    assert list(wrong_with_stream(wire(told()))) == []
    spelled = b"".join(frame(one) for one in told_whole(generation())) + b": beat\n\n" + DONE
    assert list(wrong_with_stream(frames_of(spelled))) == []


def test_a_key_that_nobody_knows_is_found() -> None:
    last = json.loads(told()[-1])["response"]
    assert opinion_of_response(json.dumps(last).encode()) == []
    for path in (
        ("odd",),
        ("usage", "odd"),
        ("output", 1, "odd"),
        ("output", 1, "content", 0, "odd"),
    ):
        assert opinion_of_response(json.dumps(changed(last, path, 1)).encode()) != []
    assert opinion_of_event(json.dumps({**json.loads(told()[3]), "odd": 1}).encode()) != []


def test_an_event_that_is_missing_doubled_or_moved_is_found() -> None:
    whole = told()
    for place in range(len(whole)):
        assert list(wrong_with_stream(wire(whole[:place] + whole[place + 1 :]))) != [], place
        assert list(wrong_with_stream(wire(whole[: place + 1] + whole[place:]))) != [], place
        if place:
            swapped = [*whole[: place - 1], whole[place], whole[place - 1], *whole[place + 1 :]]
            assert list(wrong_with_stream(wire(swapped))) != [], place


def renumbered(events: list[bytes]) -> list[bytes]:
    return [
        json.dumps({**json.loads(one), "sequence_number": number}).encode()
        for number, one in enumerate(events)
    ]


def test_an_event_that_is_missing_is_found_also_where_numbers_have_no_gap() -> None:
    whole = told()
    kinds = [json.loads(one)["type"] for one in whole]
    unnoticed = [
        kinds[place]
        for place in range(len(whole))
        if not list(wrong_with_stream(wire(renumbered(whole[:place] + whole[place + 1 :]))))
    ]
    assert set(unnoticed) == set()


def test_a_delta_that_is_another_is_found() -> None:
    whole = told()
    for place, raw in enumerate(whole):
        event = json.loads(raw)
        if "delta" in event:
            other = [*whole]
            other[place] = json.dumps({**event, "delta": "other"}).encode()
            assert list(wrong_with_stream(wire(other))) != []


def test_a_stream_without_its_end_is_found() -> None:
    whole = told()
    assert list(wrong_with_stream(tuple(whole))) == ["the stream does not end with [DONE]"]
    assert list(wrong_with_stream(wire(whole[:-1]))) != []
