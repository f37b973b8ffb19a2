"""Ids of records: when each was made, of which thread it is, and chance.

    resp_ 0198c0ffee00 5eed5eed5eed 0123456789abcdef01234567
          time         thread       chance
          48 bits, ms  48 bits      96 bits

All that belongs together, a conversation with its items and every response of a chain, has the thread of what came
first: it lies in one slot of a Redis cluster, and on one node where history is local. An id from elsewhere, a
client's own item or one of another gateway, belongs to a thread that follows from all of it.

Items that a model said in one pass of an answer have the first 40 bits of chance in common, so that a history tells which
calls were made at once.

Where each node of a cluster keeps a history of its own, the first half of a thread is a tag of the node that holds it.
"""

import re
from hashlib import blake2b
from typing import Final, Protocol

ID_CHARS_MAX: Final = 64
PASS_CHARS: Final = 10
HOLDER_CHARS: Final = 6
"""Of a thread, so many say which node holds it. In one of 3,000 clusters of a hundred nodes two have the same."""
_OURS: Final = re.compile(r"[a-z]{2,8}_([0-9a-f]{12})([0-9a-f]{12})[0-9a-f]{24}")
_ANY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:\-]{0,63}")


class Chance(Protocol):
    """Source of random bits; `random.SystemRandom` fits."""

    def getrandbits(self, k: int, /) -> int:
        """Return so many of them."""
        ...


def new_thread(chance: Chance, *, holder: str = "") -> str:
    """Return the tag of a thread that begins: 12 hexadecimal digits, those of its holder first."""
    return f"{holder}{chance.getrandbits(48):012x}"[:12]


def holder_tag(name: str) -> str:
    """Return what the threads begin with that the node of this name holds: 6 hexadecimal digits."""
    digest = blake2b(name.encode(), digest_size=HOLDER_CHARS // 2, person=b"smg holder")
    return digest.hexdigest()


def new_id(
    prefix: str, thread: str, *, now_ms: int, chance: Chance, said_in: str = "", tail: str = ""
) -> str:
    """Return an id like `resp_…` of a thread; `now_ms` is Unix time. `said_in` is the tag of a pass, "" for none.

    An id of a pass may have its last 14 digits given: `tail`, which no other of the pass has.
    """
    head = f"{prefix}_{now_ms & ((1 << 48) - 1):012x}{thread}{said_in}"
    if said_in:
        return f"{head}{tail or f'{chance.getrandbits(56):014x}'}"
    return f"{head}{chance.getrandbits(96):024x}"


def new_pass(chance: Chance) -> str:
    """Return the tag of a pass that begins: 10 hexadecimal digits."""
    return f"{chance.getrandbits(4 * PASS_CHARS):0{PASS_CHARS}x}"


def pass_of(any_id: str) -> str:
    """Return what the ids of all items of a pass have in common; "" for an id that is none of ours."""
    ours = _OURS.fullmatch(any_id)
    return any_id[ours.start(1) : ours.end(2) + PASS_CHARS] if ours is not None else ""


def thread_of(any_id: str) -> str:
    """Return the thread that an id belongs to."""
    ours = _OURS.fullmatch(any_id)
    return ours[2] if ours is not None else blake2b(any_id.encode(), digest_size=6).hexdigest()


def holder_of(any_id: str) -> str:
    """Return the tag of the node that holds this, if ids tell that here; "" for an id that is none of ours."""
    ours = _OURS.fullmatch(any_id)
    return ours[2][:HOLDER_CHARS] if ours is not None else ""


def made_ms(any_id: str) -> int | None:
    """Return when an id was made, Unix time in milliseconds by its maker's clock; None for one that is none of ours."""
    ours = _OURS.fullmatch(any_id)
    return int(ours[1], 16) if ours is not None else None


def is_id(text: str) -> bool:
    """Return whether this can be an id of anything, of any origin."""
    return _ANY.fullmatch(text) is not None
