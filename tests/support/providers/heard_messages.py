"""What a vendor's Messages answers are to their listener: their events, and parts of them."""

import json
from collections.abc import Sequence
from typing import Any

from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    Delta,
    Event,
    Finish,
    Usage,
)
from smg_node.core.generation.opaque import Opaque
from smg_node.dialects.messages.provider.listener import MessagesListener

BEGIN = Begin("0123456789abcdef" * 2, "ours", 5, 30)
USAGE = Usage(37, 12, 20, 5, 7, 3, "standard")


def listener() -> MessagesListener:
    return MessagesListener(BEGIN, prompt_tokens=30, taken=("taken",))


def heard(pieces: Sequence[bytes]) -> list[Event]:
    out: list[Event] = []
    one = listener()
    for piece in pieces:
        one.feed(piece, out)
    one.end(out)
    assert one.finished
    return out


def whole_bytes(body: bytes) -> list[Event]:
    out: list[Event] = []
    one = listener()
    one.feed_whole(body, out)
    one.end(out)
    return out


def whole(message: dict[str, Any]) -> list[Event]:
    return whole_bytes(json.dumps(message).encode())


def told(events: Sequence[Event]) -> list[object]:
    """Return what is the same however an answer is cut."""
    return [event for event in events if not isinstance(event, Delta)]


def ends(events: Sequence[Event]) -> list[tuple[str, str, tuple[Opaque, ...]]]:
    return [
        (event.kind, event.text, event.opaque) for event in events if isinstance(event, BlockEnd)
    ]


def reason(events: Sequence[Event]) -> Finish:
    [found] = [event for event in events if isinstance(event, Finish)]
    return found


def usage(events: Sequence[Event]) -> Usage:
    [found] = [event for event in events if isinstance(event, Usage)]
    return found


def signature(data: str) -> Opaque:
    return Opaque("anthropic", "signature", data)
