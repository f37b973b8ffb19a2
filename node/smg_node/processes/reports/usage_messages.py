"""Usage messages of data processes: new rows of usage, sent every tenth of a second while there are
any.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from smg_node.admission.usage.usage_lines import Line

USED: Final = "usage.lines"
"""What it is called on the bus."""

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(list[Line]).decode


def pack_used(lines: Sequence[Line]) -> bytes:
    """Return it as it travels."""
    return _encode(lines)


def read_used(content: bytes) -> list[Line]:
    """Return the rows of usage; ValueError for anything else, and for negative numbers."""
    try:
        lines = _decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not what requests used: {error}") from error
    counts = (
        (
            *(one.requests, one.refused, one.prompt, one.cached, one.answer, one.cost, one.pico),
            *(one.written, one.calls, one.unpriced, one.estimated),
            *(one.runs, one.failed, one.run_ms, one.run_bytes),
        )
        for one in lines
    )
    if any(count < 0 for of_one in counts for count in of_one):
        raise ValueError("not what requests used: less than nothing")
    return lines
