"""Ids: when, of which thread, and chance.

    resp_ 0198c0ffee00 5eed5eed5eed 0123456789abcdef01234567
          time         thread       chance
          48 bits, ms  48 bits      96 bits

All that belongs together, a conversation with its items and every response of a chain, has the thread of what came
first: it lies in one slot of a Redis cluster, and on one node where history is local. An id from elsewhere, a
client's own item or one of another gateway, belongs to a thread that follows from all of it.
"""

import re
from hashlib import blake2b
from typing import Final, Protocol

ID_CHARS_MAX: Final = 64
_OURS: Final = re.compile(r"[a-z]{2,8}_[0-9a-f]{12}([0-9a-f]{12})[0-9a-f]{24}")
_ANY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:\-]{0,63}")


class Chance(Protocol):
    """Where bits come from; `random.SystemRandom` fits."""

    def getrandbits(self, k: int, /) -> int:
        """Return so many of them."""
        ...


def new_thread(chance: Chance) -> str:
    """Return the tag of a thread that begins: 12 hexadecimal digits."""
    return f"{chance.getrandbits(48):012x}"


def new_id(prefix: str, thread: str, *, now_ms: int, chance: Chance) -> str:
    """Return an id like `resp_…` of a thread; `now_ms` is Unix time."""
    return f"{prefix}_{now_ms & ((1 << 48) - 1):012x}{thread}{chance.getrandbits(96):024x}"


def thread_of(any_id: str) -> str:
    """Return the thread that an id belongs to."""
    ours = _OURS.fullmatch(any_id)
    return ours[1] if ours is not None else blake2b(any_id.encode(), digest_size=6).hexdigest()


def is_id(text: str) -> bool:
    """Return whether this can be an id of anything, whoever made it."""
    return _ANY.fullmatch(text) is not None
