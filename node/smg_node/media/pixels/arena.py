"""Arena: memory for the pixels of one picture while it is worked on, kept for the next one.

Fresh memory costs more than what is done with it: a page fault for every 4 kB, 70 ms for 145 MB. So decoding and
resizing take their arrays from a block that stays, one for each thread at work, made as large as pictures have needed,
and given back after half a minute without work. What is taken is valid until the work on the picture ends; what
outlives it is made with `owned`. Outside of any arena, arrays are ordinary ones. numpy is imported by the first array:
a node without it serves all but pictures, and says so to who sends one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from smg_node.media.picture import Pixels

KEPT_MAX: Final = 64 << 20
"""Most bytes that an arena keeps, enough for 12 million pixels; larger pictures pay for fresh memory."""
IDLE_S: Final = 30.0
"""How long an arena may be unused before its memory is given back."""
_ALIGNMENT: Final = 64

_CURRENT: Final = local()
"""The arena of the picture that each thread works on now, as `arena`."""


class Arena:
    """A block of memory from which arrays are taken one behind the other, and all given up together."""

    def __init__(self) -> None:
        import numpy as np

        self._block = np.empty(0, dtype=np.uint8)
        self._used = 0
        self._wanted = 0
        self.used_at_s = 0.0

    @property
    def kept_bytes(self) -> int:
        """Return the size of the block."""
        return self._block.nbytes

    def take(self, shape: tuple[int, ...]) -> "Pixels":
        """Return an array with any content; from the block if it has room, else fresh."""
        import numpy as np

        size = 1
        for length in shape:
            size *= length
        start = self._used
        self._wanted += -(-size // _ALIGNMENT) * _ALIGNMENT
        if start + size > self._block.nbytes - _ALIGNMENT:
            return np.empty(shape, dtype=np.uint8)
        self._used = -(-(start + size) // _ALIGNMENT) * _ALIGNMENT
        return self._block[start : start + size].reshape(shape)

    def has(self, pixels: "Pixels") -> bool:
        """Whether an array lies in this block."""
        import numpy as np

        return bool(np.may_share_memory(pixels, self._block))

    def clear(self) -> None:
        """Give up all that was taken; a block that was too small is as large as needed from now on."""
        import numpy as np

        if self._block.nbytes < self._wanted + _ALIGNMENT <= KEPT_MAX:
            # With a rest that is never taken, so that no array is ever a whole block: caches know ours by that.
            self._block = np.empty(self._wanted + _ALIGNMENT, dtype=np.uint8)
        self._used = self._wanted = 0


class Arenas:
    """The arenas of all threads: as many as were ever at work at once, less those given back."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._free: list[Arena] = []

    @contextmanager
    def working(self, now_s: float) -> Iterator[None]:
        """Work on one picture: `scratch` on this thread takes from an arena until the end of the block.

        `now_s` is a monotonic clock's. Work inside work uses the outer arena.
        """
        if getattr(_CURRENT, "arena", None) is not None:
            yield
            return
        with self._lock:
            # The one used last: its pages are in the cache, and the others grow idle.
            arena = self._free.pop() if self._free else Arena()
        _CURRENT.arena = arena
        try:
            yield
        finally:
            _CURRENT.arena = None
            arena.clear()
            arena.used_at_s = now_s
            with self._lock:
                self._free.append(arena)

    def trim(self, now_s: float) -> None:
        """Give back the memory of arenas that were idle for half a minute."""
        with self._lock:
            self._free = [one for one in self._free if now_s - one.used_at_s < IDLE_S]

    def kept_bytes(self) -> int:
        """Return the memory of arenas that nobody works with now."""
        with self._lock:
            return sum(arena.kept_bytes for arena in self._free)


def scratch(shape: tuple[int, ...]) -> "Pixels":
    """Return an array with any content, valid until the work on this thread's picture ends."""
    import numpy as np

    arena: Arena | None = getattr(_CURRENT, "arena", None)
    return arena.take(shape) if arena is not None else np.empty(shape, dtype=np.uint8)


def owned(pixels: "Pixels") -> "Pixels":
    """Return an array that outlives the work on this thread's picture: itself, or a copy of what lies in the arena."""
    arena: Arena | None = getattr(_CURRENT, "arena", None)
    return pixels.copy() if arena is not None and arena.has(pixels) else pixels
