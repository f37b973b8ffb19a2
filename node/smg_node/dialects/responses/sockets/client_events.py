"""Client events of a Responses socket: text messages to what they ask for. Pure.

A `response.create` is the body of `POST /v1/responses` with three fields more: `type`, `stream_id`, the
lane it is for, and `generate`. Only these are read here; the rest is passed on as it was written, to
whoever reads such bodies.
"""

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

from smg_node.core.errors import SmgError, invalid
from smg_node.core.json_cursor import quoted

Fields: TypeAlias = dict[str, msgspec.Raw]
"""The fields of a JSON object, each as it was written."""

_LANE: Final = re.compile(r"[A-Za-z0-9_.-]{1,256}", re.ASCII)
_OWN: Final = ("type", "stream_id", "generate", "stream", "background")
_NULL: Final = b"null"
_SWITCHES: Final[dict[bytes, bool | None]] = {_NULL: None, b"true": True, b"false": False}
_decode_fields: Final = msgspec.json.Decoder(Fields).decode
_decode: Final = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class Create:
    """A response that is asked for in a lane ("": the one without a name); `body` has none of the socket's own fields."""

    lane: str
    body: Fields
    generates: bool = True

    @property
    def previous_id(self) -> str:
        """The response that it goes on with; "" for none, or for what is no string."""
        return text_of(self.body.get("previous_response_id"))

    @property
    def size(self) -> int:
        """Its bytes, but for the names of its fields."""
        return sum(len(value) for value in self.body.values())


@dataclass(frozen=True, slots=True)
class Steer:
    """More input for a response that is being made."""

    lane: str
    previous_id: str
    input: msgspec.Raw | None


class LanedError(Exception):
    """What is wrong with a client event, and the lane to be told of it; "" where that is not known."""

    def __init__(self, error: SmgError, lane: str) -> None:
        self.error = error
        self.lane = lane
        super().__init__(str(error))


def read_event(text: str) -> Create | Steer:
    """Return what a text message asks for; LanedError says what is wrong with it."""
    try:
        fields = _decode_fields(text)
    except (msgspec.DecodeError, RecursionError) as error:
        why = "it nests too deep" if isinstance(error, RecursionError) else str(error)
        raise LanedError(
            invalid(f"a message must be one JSON object: {why}", None, "invalid_payload"), ""
        ) from error
    lane = _lane(fields)
    try:
        kind = text_of(fields.get("type"))
        if kind == "response.create":
            return _create(fields, lane)
        if kind == "response.steer":
            previous = text_of(fields.get("previous_response_id"))
            return Steer(lane, previous, fields.get("input"))
        if not kind:
            raise invalid("must be a string", "type", "missing_required_parameter")
        why = f"there is no client event {quoted(kind[:64])}; there are response.create and response.steer"
        raise invalid(why, "type", "unknown_event")
    except SmgError as error:
        raise LanedError(error, lane) from error


def text_of(raw: msgspec.Raw | None) -> str:
    """Return a field's string; "" for what is none."""
    # What is no string may be no value either: a number out of range, for one.
    return str(_decode(raw)) if raw is not None and bytes(raw)[:1] == b'"' else ""


def _lane(fields: Fields) -> str:
    raw = fields.get("stream_id")
    if raw is None or bytes(raw) == _NULL:
        return ""
    lane = text_of(raw)
    if not _LANE.fullmatch(lane):
        why = "must be 1 to 256 letters, digits, dots, hyphens or underscores"
        raise LanedError(invalid(why, "stream_id", "invalid_value"), "")
    return lane


def _create(fields: Fields, lane: str) -> Create:
    # Some clients say `stream: true` in every message, although nothing else is possible.
    if _switch(fields, "stream") is False:
        raise invalid("a socket answers with events: stream cannot be false", "stream")
    if _switch(fields, "background"):
        why = "a socket cannot make what nobody waits for: background cannot be true"
        raise invalid(why, "background")
    generates = _switch(fields, "generate") is not False and not _prewarms(fields)
    body = {name: value for name, value in fields.items() if name not in _OWN}
    body["stream"] = msgspec.Raw(b"true")
    return Create(lane, body, generates)


def _switch(fields: Fields, name: str) -> bool | None:
    raw = fields.get(name)
    said = _NULL if raw is None else bytes(raw)
    if said not in _SWITCHES:
        raise invalid("must be true or false", name, "invalid_type")
    return _SWITCHES[said]


def _prewarms(fields: Fields) -> bool:
    raw = fields.get("prompt_cache_options")
    if raw is None or bytes(raw)[:1] != b"{":
        return False
    try:
        prewarm = _decode_fields(raw).get("prewarm")
    except RecursionError:
        # Whoever reads the body refuses it.
        return False
    return prewarm is not None and bytes(prewarm) == b"true"
