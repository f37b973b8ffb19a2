"""Worker ids in few bytes, for what is said about thousands of them.

An id like `w-0123456789ab` is six bytes with a known beginning, and most are; any other travels as it is.
"""

from collections.abc import Iterable, Sequence
from typing import Final

WORKER_ID_CHARS_MAX: Final = 64
SHORT_BYTES: Final = 6

_HEAD: Final = "w-"
_SHORT_CHARS: Final = len(_HEAD) + 2 * SHORT_BYTES
_HEX: Final = frozenset("0123456789abcdef")


def is_short(worker_id: str) -> bool:
    """Return whether the id can travel as six bytes."""
    return (
        len(worker_id) == _SHORT_CHARS
        and worker_id.startswith(_HEAD)
        and _HEX.issuperset(worker_id[len(_HEAD) :])
    )


def packed_bytes(worker_id: str) -> int:
    """Return how many bytes an id takes at most among many."""
    return SHORT_BYTES if is_short(worker_id) else len(worker_id.encode()) + 2


def pack_ids(worker_ids: Iterable[str]) -> tuple[bytes, Sequence[str]]:
    """Return many ids: the short ones end to end, and the others; each kind in the order it came."""
    short: list[str] = []
    others: list[str] = []
    for worker_id in worker_ids:
        if is_short(worker_id):
            short.append(worker_id[len(_HEAD) :])
        else:
            others.append(worker_id)
    return bytes.fromhex("".join(short)), others


def unpack_ids(short: bytes, others: Sequence[str]) -> Sequence[str]:
    """Return what `pack_ids` packed, the short ones first; ValueError for what it cannot have packed."""
    if len(short) % SHORT_BYTES:
        raise ValueError("half an id")
    if not all(0 < len(worker_id) <= WORKER_ID_CHARS_MAX for worker_id in others):
        raise ValueError("no worker is called so")
    digits = short.hex()
    width = 2 * SHORT_BYTES
    return [*(_HEAD + digits[at : at + width] for at in range(0, len(digits), width)), *others]
