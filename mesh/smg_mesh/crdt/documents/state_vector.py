"""State vector: reads from encoded documents (Yjs) how far each writer has
come, and where an update begins.

Writers are numbers, and each counts its entries. A *vector* says up to which entry of each writer a
document goes; an update begins with the writers it is from, and the entry of each it continues at.
Numbers are little-endian groups of seven bits.

    vector = writers { writer upto }
    update = writers { entries writer from entry … } deletions
    entry  = flags [left-writer left-entry] [right-writer right-entry] …
"""

from collections.abc import Mapping, Sequence
from typing import Final

_NUMBER_BYTES_MAX: Final = 10  # 64 bits in groups of seven


class VectorError(ValueError):
    """Bytes that are no vector, or no beginning of an update."""


def read_vector(data: bytes) -> Mapping[int, int]:
    """Return up to which entry each writer is known; VectorError for any bytes that are no vector."""
    count, at = _number(data, 0)
    if count > len(data):
        raise VectorError("more writers than bytes")
    vector: dict[int, int] = {}
    for _ in range(count):
        client, at = _number(data, at)
        vector[client], at = _number(data, at)
    if at != len(data):
        raise VectorError("bytes after the last writer")
    return vector


def beginning(update: bytes) -> tuple[int, int] | None:
    """Return the one writer of an update and the entry it begins at.

    (0, 0) if it only deletes, and None if it is from several writers. VectorError for other bytes.
    """
    writers, at = _number(update, 0)
    if writers != 1:
        return None if writers else (0, 0)
    _, at = _number(update, at)
    client, at = _number(update, at)
    first, at = _number(update, at)
    return client, first


def origins(update: bytes) -> Sequence[tuple[int, int]]:
    """Return how far other writers must be known for the first entry of an update to have its place.

    An entry names its neighbours: the first one that a new life of an owner writes stands beside the last
    one of the life before, whose writer was another. VectorError for bytes that are no update.
    """
    writers, at = _number(update, 0)
    if writers != 1:
        return ()
    for _ in range(3):
        _, at = _number(update, at)
    if at >= len(update):
        raise VectorError("an update without an entry")
    named = (update[at] >> 7) + (update[at] >> 6 & 1)
    at += 1
    found: list[tuple[int, int]] = []
    for _ in range(named):
        client, at = _number(update, at)
        entry, at = _number(update, at)
        found.append((client, entry + 1))
    return found


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    for place in range(at, min(at + _NUMBER_BYTES_MAX, len(data))):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place + 1
        shift += 7
    raise VectorError("a number without an end")
