"""Stored replay: rebuilds the event stream of a stored response whose log is gone.

Every text is one delta, and the numbers are new: the original deltas were not stored.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from smg_node.core.cooperative_steps import Steps, whole
from smg_node.dialects.responses.events.numbered_events import NumberedEvent, Script
from smg_node.dialects.responses.events.presenter import THOUGHT_EVENTS, ReasoningEvents
from smg_node.dialects.responses.items.item_document import ItemDoc, items_in_steps
from smg_node.dialects.responses.items.item_types import SERVED

_TERMINAL: Final[Mapping[str, str]] = {
    "completed": "response.completed",
    "incomplete": "response.incomplete",
    "cancelled": "response.incomplete",
    "failed": "response.failed",
}
TERMINAL_EVENTS: Final = frozenset(_TERMINAL.values())
"""The types of the events that are the last of their response."""
_Values = Mapping[str, Any]
_decode: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_word: Final = msgspec.json.Decoder(str).decode


def replayed(document: bytes, *, reasoning_events: ReasoningEvents = "sdk") -> list[NumberedEvent]:
    """Return the events of a stored response, up to its end if it has ended.

    ValueError if the document is not that of a response.
    """
    return whole(replayed_in_steps(document, reasoning_events=reasoning_events))


def replayed_in_steps(
    document: bytes, *, reasoning_events: ReasoningEvents = "sdk"
) -> Steps[list[NumberedEvent]]:
    """Return what `replayed` does, in steps."""
    try:
        return (yield from _retold(document, THOUGHT_EVENTS[reasoning_events]))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError) as error:
        raise ValueError(f"not the document of a response: {error}") from error


def _retold(document: bytes, thoughts: str) -> Steps[list[NumberedEvent]]:
    fields = _decode(document)
    status = _word(fields["status"])
    output = yield from items_in_steps(bytes(fields["output"]))
    script = Script()
    begun = {"response": _begun(fields)}
    told = [script.say("response.created", begun), script.say("response.in_progress", begun)]
    for index, item in enumerate(output):
        told.extend(_item(script, index, item, thoughts))
        yield item.weight
    terminal = _TERMINAL.get(status)
    if terminal is not None:
        told.append(script.say(terminal, {"response": msgspec.Raw(document)}))
    return told


def _begun(fields: Mapping[str, msgspec.Raw]) -> Mapping[str, Any]:
    """Return the response as it was before any output."""
    nothing = {"completed_at": None, "error": None, "incomplete_details": None, "usage": None}
    return {**fields, "status": "in_progress", "output": [], **nothing}


def _item(script: Script, index: int, item: ItemDoc, thoughts: str) -> Iterator[NumberedEvent]:
    values = item.values()
    place = {"item_id": item.id, "output_index": index}
    if item.type in SERVED:
        yield from _served(script, index, item, values)
        return
    late = _LATE.get(item.type)
    added = {key: value for key, value in values.items() if key != late}
    added |= _EMPTY.get(item.type, {})
    if item.type in _EMPTY:
        added["status"] = "in_progress"
    yield script.say("response.output_item.added", {"output_index": index, "item": added})
    if item.type == "reasoning":
        yield from _thought(script, place, values, thoughts)
    elif item.type in _INSIDE:
        yield from _INSIDE[item.type](script, place, values)
    done = {"output_index": index, "item": msgspec.Raw(item.document)}
    yield script.say("response.output_item.done", done)


def _served(script: Script, index: int, item: ItemDoc, values: _Values) -> Iterator[NumberedEvent]:
    """Yield the events of an item of a tool that a server ran."""
    from smg_node.dialects.responses.events.served.served_events import as_added, between

    added = {"output_index": index, "item": as_added(values)}
    yield script.say("response.output_item.added", added)
    yield from between(script, {"item_id": item.id, "output_index": index}, values)
    done = {"output_index": index, "item": msgspec.Raw(item.document)}
    yield script.say("response.output_item.done", done)


def _message(script: Script, place: _Values, values: _Values) -> Iterator[NumberedEvent]:
    for index, part in enumerate(_parts(values, "content")):
        at = {**place, "content_index": index}
        refused = part.get("type") == "refusal"
        word, key = ("refusal", "refusal") if refused else ("output_text", "text")
        text = str(part.get(key, ""))
        rows = {} if refused else {"logprobs": part.get("logprobs") or []}
        bare = (
            {**part, key: ""} if refused else {**part, key: "", "annotations": [], "logprobs": []}
        )
        yield script.say("response.content_part.added", {**at, "part": bare})
        if text:
            yield script.say(f"response.{word}.delta", {**at, "delta": text, **rows})
        for number, annotation in enumerate(_parts(part, "annotations")):
            fields = {**at, "annotation_index": number, "annotation": annotation}
            yield script.say("response.output_text.annotation.added", fields)
        yield script.say(f"response.{word}.done", {**at, key: text, **rows})
        yield script.say("response.content_part.done", {**at, "part": part})


def _thought(
    script: Script, place: _Values, values: _Values, event: str
) -> Iterator[NumberedEvent]:
    for index, part in enumerate(_parts(values, "summary")):
        at, text = {**place, "summary_index": index}, str(part.get("text", ""))
        yield script.say(
            "response.reasoning_summary_part.added", {**at, "part": {**part, "text": ""}}
        )
        if text:
            yield script.say("response.reasoning_summary_text.delta", {**at, "delta": text})
        yield script.say("response.reasoning_summary_text.done", {**at, "text": text})
        yield script.say("response.reasoning_summary_part.done", {**at, "part": part})
    for index, part in enumerate(_parts(values, "content")):
        at, text = {**place, "content_index": index}, str(part.get("text", ""))
        yield script.say("response.content_part.added", {**at, "part": {**part, "text": ""}})
        if text:
            yield script.say(f"response.{event}.delta", {**at, "delta": text})
        yield script.say(f"response.{event}.done", {**at, "text": text})
        yield script.say("response.content_part.done", {**at, "part": part})


def _call(script: Script, place: _Values, values: _Values) -> Iterator[NumberedEvent]:
    text = str(values.get("arguments", ""))
    yield script.say("response.function_call_arguments.delta", {**place, "delta": text})
    yield script.say("response.function_call_arguments.done", {**place, "arguments": text})


def _custom(script: Script, place: _Values, values: _Values) -> Iterator[NumberedEvent]:
    text = str(values.get("input", ""))
    yield script.say("response.custom_tool_call_input.delta", {**place, "delta": text})
    yield script.say("response.custom_tool_call_input.done", {**place, "input": text})


def _parts(values: _Values, key: str) -> list[dict[str, Any]]:
    parts = values.get(key)
    return [part for part in parts if type(part) is dict] if type(parts) is list else []


_LATE: Final = {"reasoning": "encrypted_content", "message": "phase"}
"""What is known only when an item ends."""
_EMPTY: Final[Mapping[str, Mapping[str, Any]]] = {
    "message": {"content": []},
    "reasoning": {"summary": [], "content": []},
    "function_call": {"arguments": ""},
    "custom_tool_call": {"input": ""},
}
_INSIDE: Final[Mapping[str, Callable[[Script, _Values, _Values], Iterator[NumberedEvent]]]] = {
    "message": _message,
    "function_call": _call,
    "custom_tool_call": _custom,
}
