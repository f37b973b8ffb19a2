"""Stored replay: rebuilds the event stream of a stored interaction whose log is gone.

Every text is one delta, and the numbers are new: the original deltas were not stored.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from smg_node.core.cooperative_steps import Steps
from smg_node.dialects.interactions.events.interaction_object import last_event
from smg_node.dialects.interactions.events.open_step import Numbers
from smg_node.dialects.interactions.events.shown_steps import step_of
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.dialects.responses.items.item_document import items_in_steps

_LOST: Final = "the stream cannot go on here; what became of the interaction can be asked for"
_CREATED: Final = ("id", "object", "model", "created")
_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_errors: Final = msgspec.json.Decoder(list[dict[str, Any]]).decode


def replayed_in_steps(kept: bytes) -> Steps[list[NumberedEvent]]:
    """Return the events of a stored interaction that has ended, in steps; ValueError for no document."""
    try:
        fields = _fields(kept)
        failed = _errors(fields["errors"]) if "errors" in fields else []
    except msgspec.DecodeError as error:
        raise ValueError("this is no interaction") from error
    numbers = Numbers()
    created: dict[str, Any] = {name: fields[name] for name in _CREATED if name in fields}
    created["status"] = "in_progress"
    told = [numbers.say("interaction.created", {"interaction": created})]
    items = yield from items_in_steps(bytes(fields.get("output", b"[]")))
    for index, item in enumerate(items):
        told += _step(numbers, index, step_of(item.values()))
        yield item.weight
    told += [numbers.say("error", {"error": error}) for error in failed]
    told.append(last_event(kept, numbers.next))
    return told


def cut_short(kept: bytes, following: int) -> list[NumberedEvent]:
    """Return an error and the end, for a client that has seen more than was kept."""
    numbers = Numbers(following)
    lost = {"code": "stream_lost", "message": _LOST}
    told = [numbers.say("error", {"error": lost})]
    return [*told, last_event(kept, numbers.next)]


def _step(numbers: Numbers, index: int, step: Mapping[str, Any]) -> Iterator[NumberedEvent]:
    kind = step["type"]
    if kind == "model_output":
        yield numbers.start(index, {"type": kind, "content": []})
        for content in step["content"]:
            yield numbers.delta(index, {"type": "text", "text": content["text"]})
    elif kind == "thought":
        yield numbers.start(index, {"type": kind})
        for content in step.get("summary", ()):
            yield numbers.delta(index, {"type": "thought_summary", "content": content})
        if "signature" in step:
            signature = {"type": "thought_signature", "signature": step["signature"]}
            yield numbers.delta(index, signature)
    elif kind == "function_call":
        yield numbers.start(index, {**step, "arguments": {}})
        arguments = bytes(step["arguments"]).decode()
        yield numbers.delta(index, {"type": "arguments_delta", "arguments": arguments})
    else:
        yield numbers.start(index, step)
    yield numbers.stop(index)
