"""Server events that only a Responses socket has, and what it changes in those of a stream. Pure."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from smg_node.core.errors import SmgError
from smg_node.dialects import openai_errors
from smg_node.dialects.responses.sockets.client_events import Fields, Steer

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Fields).decode
TERMINAL: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
"""The types of a response's last event."""


class Head(msgspec.Struct):
    """The beginning of an event: what of it is always looked at."""

    type: str = ""


read_head: Final = msgspec.json.Decoder(Head).decode


class _ErrorBody(msgspec.Struct):
    error: dict[str, Any]


_read_error: Final = msgspec.json.Decoder(_ErrorBody).decode


def in_lane(event: bytes, lane: str) -> bytes:
    """Return an event, a JSON object, as one of this lane."""
    return event[:-1] + b',"stream_id":"%b"}' % lane.encode() if lane else event


def error_event(error: SmgError, lane: str, headers: Mapping[str, str] | None = None) -> bytes:
    """Return the event that tells of an error."""
    return _error(error.status, dict(openai_errors.error_object(error)), lane, headers or {})


def refused_event(status: int, body: bytes, lane: str, headers: Mapping[str, str]) -> bytes:
    """Return the event that tells of an answer that is no stream: its status and the error in its body."""
    try:
        told = _read_error(body).error
    except msgspec.DecodeError:
        told = {"type": "server_error", "code": "internal_error", "message": "no answer was made"}
    return _error(status, told, lane, headers)


def steer_failed(steer: Steer, lane: str) -> bytes:
    """Return the event that tells that a response cannot be steered; `lane` is where that is being made."""
    given = steer.input if steer.input is not None else msgspec.Raw(b"[]")
    return in_lane(
        _encode(
            {
                "type": "response.steer.failed",
                "sequence_number": 0,
                "steer": {"previous_response_id": steer.previous_id, "input": given},
                "error": {
                    "type": "invalid_request_error",
                    "code": "steering_not_supported",
                    "message": "a response cannot be steered while it is made",
                },
            }
        ),
        lane,
    )


def with_response(event: bytes, changes: Mapping[str, Any]) -> bytes:
    """Return an event with these fields of its response changed; the same where it has none."""
    fields = _decode(event)
    raw = fields.get("response")
    if raw is None:
        return event
    return _encode({**fields, "response": {**_decode(raw), **changes}})


def response_in(event: bytes) -> Fields:
    """Return the response of an event that has one."""
    return _decode(_decode(event)["response"])


def _error(status: int, told: dict[str, Any], lane: str, headers: Mapping[str, str]) -> bytes:
    if headers:
        told["headers"] = dict(headers)
    return in_lane(_encode({"type": "error", "status": status, "error": told}), lane)
