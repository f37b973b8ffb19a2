"""Engines' caches for tests of the prefix index: naive ones, and what they would publish."""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from smg_node.engines.kv_events import KvBlock, KvEvent, KvRemoved, KvStored, Tier

Path = tuple[int, ...]
"""All ids from the beginning of a prompt to the end of an engine block."""
GONE = 3
WEIGHTS = {0: 1.0, 1: 0.6, 2: 0.3}


def name_of(path: Path, namespace: str = "") -> int:
    """Return an engine's own name of a block: signed, opaque, the same every time."""
    name = 0x1234_5678_9ABC_DEF1
    for one in (*map(ord, namespace), *path):
        name = (name * 6_364_136_223_846_793_005 + one + 1) % 2**64
    return name - 2**63


def stored(
    path: Sequence[int], size: int, first: int = 0, tier: Tier = Tier.DEVICE, namespace: str = ""
) -> KvStored:
    """Return the event for the engine blocks of `path` from the block `first` on."""
    ids = tuple(path)
    blocks = tuple(
        KvBlock(name_of(ids[: at + size], namespace), array("I", ids[at : at + size]))
        for at in range(first * size, len(ids) - size + 1, size)
    )
    parent = name_of(ids[: first * size], namespace) if first else None
    return KvStored(parent, blocks, tier, adapter=namespace)


def removed(*paths: Sequence[int], tier: Tier = Tier.DEVICE, namespace: str = "") -> KvRemoved:
    """Return the event for one copy of each of these blocks."""
    return KvRemoved(tuple(name_of(tuple(path), namespace) for path in paths), tier)


@dataclass
class NaiveCache:
    """What one engine holds: copies of engine blocks by their paths and distances."""

    size: int
    copies: dict[Path, list[int]] = field(default_factory=dict)

    def store(self, path: Path, first: int, tier: Tier) -> KvEvent:
        """Hold a copy of each block of `path` from `first` on."""
        for end in range((first + 1) * self.size, len(path) + 1, self.size):
            self.copies.setdefault(path[:end], [0, 0, 0])[min(tier, 2)] += 1
        return stored(path, self.size, first, tier)

    def remove(self, path: Path, tier: Tier) -> KvEvent:
        """Hold one copy less of one block."""
        counts = self.copies.get(path)
        if counts is not None:
            counts[min(tier, 2)] = max(0, counts[min(tier, 2)] - 1)
            if not any(counts):
                del self.copies[path]
        return removed(path, tier=tier)

    def distance(self, path: Path) -> int:
        """Return how near an engine block is held."""
        counts = self.copies.get(path, (0, 0, 0))
        return next((at for at, count in enumerate(counts) if count), GONE)

    def ours(self, prompt: Path, block: int) -> Iterator[int]:
        """Yield how far away each whole block of `prompt` is, in blocks of our size."""
        for end in range(block, len(prompt) + 1, block):
            yield min(self._through(prompt[:end], end - block), default=GONE)

    def _through(self, beginning: Path, start: int) -> Iterator[int]:
        for path in self.copies:
            reaches = len(path) - self.size < len(beginning) <= len(path)
            if reaches and path[: len(beginning)] == beginning:
                under = range(start // self.size * self.size, len(path), self.size)
                yield max(self.distance(path[: at + self.size]) for at in under)

    def score(self, prompt: Path, block: int) -> float:
        """Return what an index that knows all this cache says of a prompt, in blocks."""
        score = 0.0
        for distance in self.ours(prompt, block):
            if distance == GONE:
                break
            score += WEIGHTS[distance]
        return score
