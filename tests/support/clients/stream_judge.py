"""What is right in a stream of events: each of them, their order, and what they add up to."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from support.clients import sdk_validation
from support.clients.open_responses_schema import ITEM_TYPES, wrong_with_event

TERMINAL: Final = ("response.completed", "response.incomplete", "response.failed")
# The open schema says `response.reasoning.delta`, and knows functions only.
_ONLY_OF_THE_SDK: Final = ("response.reasoning_text", "response.custom_tool_call_input")
_JOINED: Final = {
    "response.output_text": "text",
    "response.reasoning_text": "text",
    "response.refusal": "refusal",
    "response.function_call_arguments": "arguments",
    "response.custom_tool_call_input": "input",
}
_LETTERS: Final = {
    "output_item.added": "A",
    "output_item.done": "Z",
    "content_part.added": "P",
    "content_part.done": "Q",
    "reasoning_summary_part.added": "P",
    "reasoning_summary_part.done": "Q",
    "output_text.annotation.added": "n",
    **{
        f"{stem}.{last}": letter
        for stem in ("output", "reasoning", "refusal", "function", "custom")
        for last, letter in (("delta", "d"), ("done", "D"))
    },
}
_ORDER: Final = {
    "message": "A(Pd*n*DQ)*Z",
    "reasoning": "A(Pd*DQ)*Z",
    "function_call": "Ad+DZ",
    "custom_tool_call": "Ad+DZ",
}
"""How the events of an item follow one another, a letter for each."""


DONE: Final = b"[DONE]"


def frames_of(raw: bytes) -> tuple[bytes, ...]:
    """Return the data of all whole frames of a stream, `[DONE]` among them; AssertionError if they are no frames."""
    events = []
    for frame in raw.decode(errors="replace").split("\n\n")[:-1]:
        lines = [line for line in frame.split("\n") if line and not line.startswith(":")]
        if not lines:
            continue
        data = lines[-1].removeprefix("data: ").encode()
        if data != DONE:
            assert lines[0] == f"event: {json.loads(data)['type']}", lines
        events.append(data)
    return tuple(events)


def wrong_with_stream(
    frames: tuple[bytes, ...], *, begins: bool = True, open_names: bool = False
) -> Iterator[str]:
    """Yield what is wrong with the data of the frames of one stream.

    `begins`: it was told from its first event; `open_names`: thoughts have the names of the open schema.
    """
    if len(frames) < 2 or frames[-1] != DONE or DONE in frames[:-1]:
        yield "the stream does not end with [DONE]"
        return
    yield from wrong_with_events(frames[:-1], open_names=open_names)
    events = [_as_the_sdk_has_it(raw) for raw in frames[:-1]]
    told = [json.loads(raw) for raw in events]
    if told[-1]["type"] not in TERMINAL:
        yield f"the stream ends with {told[-1]['type']}"
    elif begins:
        yield from _wrong_with_whole(events, told)


def wrong_with_events(events: tuple[bytes, ...], *, open_names: bool = False) -> Iterator[str]:
    """Yield what is wrong with some events that follow one another."""
    for number, raw in enumerate(events):
        event = json.loads(raw)
        shown = _as_the_open_schema_has_it(event, open_names=open_names)
        if shown:
            yield from wrong_with_event(shown)
        yield from sdk_validation.opinion_of_event(_as_the_sdk_has_it(raw) if open_names else raw)
        if event["sequence_number"] != json.loads(events[0])["sequence_number"] + number:
            yield f"event {event['sequence_number']} is the {number}th"
        if event["type"] in TERMINAL and number < len(events) - 1:
            yield f"{event['type']} is not the end"


def _as_the_sdk_has_it(raw: bytes) -> bytes:
    event = json.loads(raw)
    if not event["type"].startswith("response.reasoning."):
        return raw
    return json.dumps(
        {**event, "type": event["type"].replace("reasoning.", "reasoning_text.")}
    ).encode()


def _as_the_open_schema_has_it(event: Mapping[str, Any], *, open_names: bool) -> Mapping[str, Any]:
    """Return the event without what that schema has no words for; empty if nothing is left."""
    kind, item = str(event["type"]), event.get("item")
    stem = kind.rpartition(".")[0]
    foreign = _ONLY_OF_THE_SDK[1:] if open_names else _ONLY_OF_THE_SDK
    if stem in foreign or (item and item["type"] not in ITEM_TYPES):
        return {}
    if "response" in event:
        return {**event, "response": open_response(event["response"])}
    return event


def open_response(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a response without the items and tools that only others know."""
    output = [item for item in values["output"] if item["type"] in ITEM_TYPES]
    tools = [tool for tool in values["tools"] if tool["type"] == "function"]
    return {**values, "output": output, "tools": tools}


def _wrong_with_whole(events: list[bytes], told: list[Any]) -> Iterator[str]:
    kinds = [event["type"] for event in told]
    if kinds[0] != "response.created" or told[0]["sequence_number"] != 0:
        yield f"the stream begins with {kinds[0]}"
    if len({event["response"]["id"] for event in told if "response" in event}) != 1:
        yield "the stream is of more than one response"
    final = told[-1]["response"]["output"]
    yield from sdk_validation.opinion_of_whole(events, final)
    done = [event["item"] for event in told if event["type"] == "response.output_item.done"]
    if done != final:
        yield f"the items that were done are {done}, those told at the end {final}"
    yield from _wrong_with_deltas(told)
    yield from _wrong_with_order(told)


def _wrong_with_order(told: list[Any]) -> Iterator[str]:
    """Events come in the order of the API: the response begins, item after item, and ends."""
    kinds = [event["type"].removeprefix("response.") for event in told]
    if "item_id" in told[1] or not re.match(
        r"created (queued )?in_progress ", f"{' '.join(kinds)} "
    ):
        yield f"the stream begins with {kinds[:3]}"
    spelled: dict[int, str] = {}
    for kind, event in zip(kinds, told, strict=True):
        index = event.get("output_index")
        if index is not None:
            if index not in (len(spelled), len(spelled) - 1):
                yield f"{kind} of item {index} among those of item {len(spelled) - 1}"
            spelled[index] = spelled.get(index, "") + _letter(kind)
    for item, order in zip(told[-1]["response"]["output"], spelled.values(), strict=False):
        if not re.fullmatch(_ORDER.get(item["type"], "[a-zA-Z]+"), order):
            yield f"the events of a {item['type']} are {order}"


def _letter(kind: str) -> str:
    stem, _, last = kind.rpartition(".")
    short = f"{stem.partition('_')[0]}.{last}"
    return _LETTERS.get(kind) or _LETTERS.get(short, "?")


def _wrong_with_deltas(told: list[Any]) -> Iterator[str]:
    """What was told piece by piece is what is told as a whole."""
    pieces: dict[tuple[str, str, int], str] = {}
    for event in told:
        stem, _, last = event["type"].rpartition(".")
        if stem not in _JOINED:
            continue
        place = (stem, event["item_id"], event.get("content_index", 0))
        if last == "delta":
            pieces[place] = pieces.get(place, "") + event["delta"]
        elif last == "done" and pieces.get(place, "") != event[_JOINED[stem]]:
            yield f"{place}: deltas add up to {pieces.get(place)!r}, not {event[_JOINED[stem]]!r}"
