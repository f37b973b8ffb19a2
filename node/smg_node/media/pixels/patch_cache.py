"""Patch cache: the 8-bit patches of pictures seen lately, by their digests, within a bound of bytes.

A chat sends all of its pictures again with every turn; a hit skips decoding, resizing and cutting. Levels are kept and
not numbers: they are a half to a quarter of the bytes, and right for every dtype that a worker may want. The least
recently used go first. Threads may use it at the same time.
"""

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from smg_node.media.family import PicturePlan
    from smg_node.media.picture import Pixels

ENTRY_OVERHEAD: Final = 1024
"""Bytes that an entry costs beside its patches: key, plan, array and the dictionary's share."""


class CachedPatches(NamedTuple):
    """A picture as `Family.patches` made it, and the plan it was made by; the array cannot be written to.

    The plan is None of what another process has made.
    """

    plan: "PicturePlan | None"
    patches: "Pixels"


class CacheCounts(NamedTuple):
    """What happened since the start (`hits`, `misses`, `evictions`), and what is held now."""

    hits: int
    misses: int
    evictions: int
    entries: int
    held_bytes: int


class PatchCache:
    """Patches by digest, at most `bytes_max` bytes of them; 0 keeps nothing and counts nothing."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._lock = Lock()
        self._kept: OrderedDict[str, CachedPatches] = OrderedDict()
        self._held = 0
        self._hits = self._misses = self._evictions = 0

    def get(self, digest: str) -> CachedPatches | None:
        """Return what was put under the digest, which is now the most recently used; None where it is not kept."""
        with self._lock:
            if not self._bytes_max:
                return None
            found = self._kept.get(digest)
            if found is None:
                self._misses += 1
                return None
            self._hits += 1
            self._kept.move_to_end(digest)
            return found

    def has(self, digest: str) -> bool:
        """Whether patches are kept under the digest; nothing is counted, and nothing used."""
        with self._lock:
            return digest in self._kept

    def put(self, digest: str, plan: "PicturePlan", patches: "Pixels") -> CachedPatches:
        """Keep the patches, if they alone are within the bound; return them as they are kept.

        The array is the cache's from here on: it is made read-only, and copied first where it is a part of another,
        which may be memory that the next picture is written into.
        """
        entry = CachedPatches(plan, held(patches))
        with self._lock:
            if _size(entry) > self._bytes_max:
                return entry
            before = self._kept.pop(digest, None)
            if before is not None:
                self._held -= _size(before)
            self._kept[digest] = entry
            self._held += _size(entry)
            self._shrink()
        return entry

    def resize(self, bytes_max: int) -> None:
        """Set the bound; what is beyond it goes at once."""
        with self._lock:
            self._bytes_max = bytes_max
            self._shrink()

    def counts(self) -> CacheCounts:
        """Return the counters for metrics."""
        with self._lock:
            counted = (self._hits, self._misses, self._evictions)
            return CacheCounts(*counted, len(self._kept), self._held)

    def close(self) -> None:
        """Let everything go."""
        self.resize(0)

    def _shrink(self) -> None:
        while self._held > self._bytes_max:
            _, oldest = self._kept.popitem(last=False)
            self._held -= _size(oldest)
            self._evictions += 1


def _size(entry: CachedPatches) -> int:
    return entry.patches.nbytes + ENTRY_OVERHEAD


def held(patches: "Pixels") -> "Pixels":
    """Return an array that cannot be written to and is all of its memory: the same one, unless it is a part of another."""
    if not _is_whole(patches):
        patches = patches.copy()
    patches.setflags(write=False)
    return patches


def _is_whole(patches: "Pixels") -> bool:
    """Whether an array is all of the memory that it lies in."""
    root = patches
    while root.base is not None:
        root = root.base
        if not hasattr(root, "base"):
            return False
    return root.nbytes == patches.nbytes
