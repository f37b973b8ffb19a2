"""Socket memory: the last response of each lane that no store keeps, for those that go on with it. Pure.

A client that does not want its responses stored may go on with the last one over the same socket:
what it said and was told is here then, and nowhere else. It is sent as the input of the next one, so
nothing behind the socket knows of it. A socket that closes forgets all of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from smg_node.dialects.responses.sockets.client_events import Create, Fields, text_of

REMEMBERED_MAX_BYTES: Final = 16 * 1024 * 1024
"""Of all lanes of a socket; what is longer has to be sent again by its client."""

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
_read_items: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_TRUE: Final = msgspec.Raw(b"true")


@dataclass(frozen=True, slots=True)
class _Remembered:
    """A response with what came before it: the stored one that it follows, and all items since."""

    id: str
    follows: str
    items: tuple[bytes, ...]

    @property
    def size(self) -> int:
        """Its bytes."""
        return sum(map(len, self.items))


@dataclass(frozen=True, slots=True)
class Continued:
    """A response to be made: its whole body, what is known of the past, and the id that its client goes on with."""

    body: Fields
    follows: str
    items: tuple[bytes, ...]
    said_previous: str = ""
    """The id that the client named, where the body does not: it is remembered here only."""


class SocketMemory:
    """What one socket remembers."""

    def __init__(self, max_bytes: int = REMEMBERED_MAX_BYTES) -> None:
        self._max_bytes: Final = max_bytes
        self._lanes: dict[str, _Remembered] = {}

    def continued(self, create: Create) -> Continued:
        """Return what is to be asked for, with the past that only the socket knows."""
        previous = create.previous_id
        known = next((one for one in self._lanes.values() if one.id == previous), None)
        new = _items_of(create.body.get("input"))
        if known is None or not previous:
            return Continued(create.body, previous, new)
        items = (*known.items, *new)
        body = {**create.body, "input": msgspec.Raw(b"[" + b",".join(items) + b"]")}
        del body["previous_response_id"]
        if known.follows:
            body["previous_response_id"] = msgspec.Raw(_encode(known.follows))
        return Continued(body, known.follows, items, previous)

    def made(self, lane: str, asked: Continued, response: Fields) -> None:
        """Remember a response that ended well, unless a store does."""
        self._lanes.pop(lane, None)
        stored = response.get("store", _TRUE)
        if bytes(stored) != b"false" or "conversation" in asked.body:
            return
        output = response.get("output")
        self.keep(lane, asked, text_of(response.get("id")), _read_items(output) if output else ())

    def keep(
        self, lane: str, asked: Continued, response_id: str, output: Sequence[msgspec.Raw]
    ) -> None:
        """Remember what was asked and told; the lane's last one is forgotten, and this one too if it is too long."""
        self._lanes.pop(lane, None)
        # Copies: a part of a message would keep the whole of it.
        items = (*asked.items, *(bytes(item) for item in output))
        kept = _Remembered(response_id, asked.follows, items)
        if kept.size + sum(one.size for one in self._lanes.values()) <= self._max_bytes:
            self._lanes[lane] = kept

    def failed(self, asked: Continued) -> None:
        """Forget the response that one which failed went on with."""
        self._lanes = {
            lane: one for lane, one in self._lanes.items() if one.id != asked.said_previous
        }


def warming(asked: Continued) -> Continued:
    """Return a request that has its prompt read by an engine, and is not answered."""
    changes = {"max_output_tokens": msgspec.Raw(b"1"), "store": msgspec.Raw(b"false")}
    return replace(asked, body={**asked.body, **changes})


def body_bytes(asked: Continued) -> bytes:
    """Return the body of the request."""
    return _encode(asked.body)


def _items_of(raw: msgspec.Raw | None) -> tuple[bytes, ...]:
    """Return the items of an `input`; none for what is neither a list nor a string, which its reader refuses."""
    if raw is None:
        return ()
    start = bytes(raw).lstrip()[:1]
    if start == b"[":
        return tuple(bytes(item) for item in _read_items(raw))
    if start == b'"' and (text := _decode(raw)):
        return (_encode({"type": "message", "role": "user", "content": text}),)
    return ()
