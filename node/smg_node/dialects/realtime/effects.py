"""Effects: what a realtime session wants done by whoever drives it, in this order and no other."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec

from smg_node.dialects.realtime.config.retention import Retention
from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.dialects.responses.request.response_request import ResponseRequest

CloseCode: TypeAlias = Literal[1000, 1001, 1008, 1012]


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send this frame: one JSON object in UTF-8, without a line end. A struct, because there is one for each token."""

    frame: bytes


@dataclass(frozen=True, slots=True)
class Start:
    """Start the generation of an answer, and tell the session what becomes of it.

    Its prompt is `generate_request(ask, (*history, *ask.items))`. Where that is too long, groups of `history` may be left
    out as `truncation` says: None for none of them. The client waits for `Session.started`, or for an error in its place.
    """

    response_id: str
    ask: ResponseRequest
    history: tuple[ItemDoc, ...]
    truncation: Retention | None


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the generation of this answer: nobody waits for more of it. What still comes of it may be fed, and is ignored."""

    response_id: str


@dataclass(frozen=True, slots=True)
class Timer:
    """Call `Session.time` at this Unix time in milliseconds, or soon after. It replaces the timer before it."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class Close:
    """Close the socket with this code and reason, when all that was said before is sent. Nothing follows."""

    code: CloseCode
    reason: str


@dataclass(frozen=True, slots=True)
class RateLimit:
    """What a limit leaves, said when an answer begins; no effect, but what `Session.started` is told."""

    name: Literal["requests", "tokens"]
    limit: int
    remaining: int
    reset_seconds: float

    def shown(self) -> dict[str, Any]:
        """Return the public object."""
        return {
            "name": self.name,
            "limit": self.limit,
            "remaining": self.remaining,
            "reset_seconds": self.reset_seconds,
        }


Effect: TypeAlias = Send | Start | Cancel | Timer | Close
