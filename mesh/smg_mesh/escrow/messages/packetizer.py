"""Packetizer: splits messages that are too long for one packet into several that say the same.

That works because rows are totals, each by itself.

Only the number of rows grows without bound, with the length of keys. Half of the rows is a message like the
other half. A page of records that is too long is cut short, and says that there is more.
"""

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

import msgspec

from smg_mesh.escrow.messages.messages import (
    PACKET_BYTES_MAX,
    LeaseAsk,
    LeaseVote,
    LoanAsk,
    LoanGive,
    LoanTell,
    Message,
    RecordsTell,
    RightsAsk,
    RightsGive,
    encoded,
    together,
)

Row = TypeVar("Row")
_ARRAY_BYTES: Final = 5
"""Around a message that is alone in its packet."""


def packets(
    messages: Iterable[Message], known: dict[int, Sequence[bytes]] | None = None
) -> list[bytes]:
    """Return packets with all of these, in order, none longer than a packet may be.

    `known` has messages, by identity, that were encoded already: what goes to many is encoded once.
    """
    known = {} if known is None else known
    parts: list[bytes] = []
    for message in messages:
        found = known.get(id(message))
        if found is None:
            found = known[id(message)] = _parts(message)
        parts += found
    return together(parts)


def _parts(message: Message) -> Sequence[bytes]:
    whole = encoded(message)
    if len(whole) + _ARRAY_BYTES <= PACKET_BYTES_MAX:
        return (whole,)
    return [encoded(part) for part in fitting(message)]


def fitting(message: Message) -> Sequence[Message]:
    """Return messages that fit and together say what this one says."""
    if len(encoded(message)) + _ARRAY_BYTES <= PACKET_BYTES_MAX:
        return (message,)
    halves: list[Message]
    match message:
        case RightsAsk(rows=rows) | RightsGive(rows=rows) if len(rows) > 1:
            halves = [msgspec.structs.replace(message, rows=half) for half in _halves(rows)]
        case LoanAsk(rows=rows) if len(rows) > 1:
            halves = [msgspec.structs.replace(message, rows=half) for half in _halves(rows)]
        case LoanGive(rows=rows) if len(rows) > 1:
            halves = [msgspec.structs.replace(message, rows=half) for half in _halves(rows)]
        case LoanTell(rows=rows) if len(rows) > 1:
            halves = [msgspec.structs.replace(message, rows=_halves(rows)[0], more=True)]
        case LeaseAsk(minted=minted) if len(minted) > 1:
            halves = [msgspec.structs.replace(message, minted=half) for half in _halves(minted)]
        case LeaseVote(stored=stored) if len(stored) > 1:
            halves = [msgspec.structs.replace(message, stored=half) for half in _halves(stored)]
        case RecordsTell(rows=told) if len(told) > 1:
            halves = [msgspec.structs.replace(message, rows=_halves(told)[0], more=True)]
        case _:
            raise AssertionError(f"{type(message).__name__} without rows is longer than a packet")
    return [part for half in halves for part in fitting(half)]


def _halves(rows: tuple[Row, ...]) -> list[tuple[Row, ...]]:
    middle = len(rows) // 2
    return [rows[:middle], rows[middle:]]
