"""Server-sent events (SSE) as vendors frame them: named, data only, data before the name, and with CRLF."""

from typing import Any, Final

import msgspec

DONE: Final = b"data: [DONE]\n\n"
encode: Final = msgspec.json.Encoder().encode


def data_event(value: Any) -> bytes:
    """Return an event without a name."""
    return b"data: %b\n\n" % encode(value)


def named_event(name: str, value: Any) -> bytes:
    """Return an event with its name first."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), encode(value))


def data_first_event(name: str, value: Any) -> bytes:
    """Return an event whose data come before its name, as mantle writes them."""
    return b"data: %b\nevent: %b\n\n" % (encode(value), name.encode())


def crlf_event(value: Any) -> bytes:
    """Return an event without a name whose lines end in CRLF, as Gemini writes them."""
    return b"data: %b\r\n\r\n" % encode(value)
