"""Interaction object: what is kept of an interaction, and the public object it is shown as. Pure.

Kept is one document like a response's, with the house's items as its `output`, so history reads both
alike. What clients see is made of it: `output` as steps, and the status by what the last of them are.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Usage
from smg_node.dialects.interactions.events.shown_steps import steps_of
from smg_node.dialects.interactions.request.interaction_request import InteractionRequest
from smg_node.dialects.openai.frames import json_line
from smg_node.dialects.openai_errors import error_object
from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.dialects.responses.items.item_document import ItemDoc, items_of, list_of

OBJECT: Final = "interaction"
COMPLETED: Final = "interaction.completed"
ERROR: Final = "error"
_HIDDEN: Final = ("output", "background")
_SUMMARY: Final = ("id", "object", "status", "model", "created", "updated", "usage", "errors")
_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_word: Final = msgspec.json.Decoder(str).decode


class _Type(msgspec.Struct):
    type: str = ""


class _Summary(msgspec.Struct):
    status: str = ""


class _Ended(msgspec.Struct):
    interaction: _Summary


_ended: Final = msgspec.json.Decoder(_Ended).decode
_types: Final = msgspec.json.Decoder(list[_Type]).decode


def time_text(unix_s: int) -> str:
    """Return a time as RFC 3339 spells it, in UTC."""
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def usage_object(usage: Usage) -> dict[str, Any]:
    """Return `usage`: here the output is without thoughts."""
    said = usage.completion_tokens - usage.reasoning_tokens
    return {
        "total_input_tokens": usage.prompt_tokens,
        "total_cached_tokens": usage.cached_tokens,
        "total_output_tokens": said,
        "total_thought_tokens": usage.reasoning_tokens,
        "total_tool_use_tokens": 0,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


def errors_shown(error: SmgError | None) -> list[dict[str, str]]:
    """Return `errors` of the object of an interaction that failed with this."""
    return (
        [] if error is None else [{"code": error.code, "message": error_object(error)["message"]}]
    )


class InteractionObject:
    """The kept document of one interaction; its constant part is put together once."""

    __slots__ = ("_created_s", "_echo", "_head")

    def __init__(self, ask: InteractionRequest, *, interaction_id: str, created_s: int) -> None:
        self._created_s = created_s
        self._head = {"id": interaction_id, "object": OBJECT}
        self._echo = {
            "model": ask.model,
            "background": ask.background,
            **{name: msgspec.Raw(json_line(value)) for name, value in ask.echo.items()},
        }

    def kept(
        self,
        status: str,
        output: Sequence[ItemDoc],
        *,
        ended: FinalStatus | None = None,
        usage: Usage | None = None,
    ) -> bytes:
        """Return the document as it is at this moment, one line of JSON."""
        updated_s = ended.completed_s if ended is not None else 0
        fields: dict[str, Any] = {
            **self._head,
            "status": status,
            "created": time_text(self._created_s),
            "updated": time_text(updated_s or self._created_s),
            **self._echo,
            "output": msgspec.Raw(list_of(output)),
        }
        if usage is not None:
            fields["usage"] = usage_object(usage)
        if ended is not None and ended.error is not None:
            fields["errors"] = errors_shown(ended.error)
        return json_line(fields)


def public_object(kept: bytes, own_input: Sequence[ItemDoc] | None = None) -> bytes:
    """Return the public object, with the steps of its own input if those are given.

    ValueError for a document that is none.
    """
    fields = _read(kept)
    items = items_of(bytes(fields.get("output", b"[]")))
    shown: dict[str, Any] = {
        **{name: value for name, value in fields.items() if name not in _HIDDEN},
        "status": _status(_said(fields), [item.type for item in items]),
        "steps": steps_of(items),
    }
    if own_input is not None:
        shown["input"] = steps_of(own_input)
    return json_line(shown)


def summary(kept: bytes) -> dict[str, Any]:
    """Return what the last event says of the interaction: no steps. ValueError for no document."""
    fields = _read(kept)
    types = [each.type for each in _types(fields.get("output", b"[]"))]
    known: dict[str, Any] = {name: fields[name] for name in _SUMMARY if name in fields}
    return {**known, "status": _status(_said(fields), types)}


def last_event(kept: bytes, number: int) -> NumberedEvent:
    """Return the event that ends the stream of this interaction; ValueError for no document."""
    fields = {"event_type": COMPLETED, "event_id": str(number), "interaction": summary(kept)}
    return NumberedEvent(number, COMPLETED, json_line(fields))


def has_failed(last: NumberedEvent) -> bool:
    """Return whether the event that ends a stream says that its interaction failed."""
    return _ended(last.data).interaction.status == "failed"


def ended_object(kept: bytes, output: Sequence[ItemDoc], ended: FinalStatus) -> bytes:
    """Return the document with its output and its end; ValueError if it is none."""
    fields: dict[str, Any] = {
        **_read(kept),
        "status": ended.status,
        "updated": time_text(ended.completed_s),
        "output": msgspec.Raw(list_of(output)),
    }
    if ended.error is not None:
        fields["errors"] = errors_shown(ended.error)
    return json_line(fields)


def _status(status: str, types: Sequence[str]) -> str:
    """Return the public status: calls of the client's functions are for the client to answer."""
    waits = status == "completed" and "function_call" in types
    return "requires_action" if waits else status


def _read(kept: bytes) -> dict[str, msgspec.Raw]:
    try:
        return _fields(kept)
    except msgspec.DecodeError as error:
        raise ValueError("this is no interaction") from error


def _said(fields: Mapping[str, msgspec.Raw]) -> str:
    try:
        return _word(fields["status"])
    except (KeyError, msgspec.DecodeError) as error:
        raise ValueError("this is no interaction") from error
