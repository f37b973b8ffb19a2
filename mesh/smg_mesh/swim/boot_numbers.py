"""Boot numbers: ids of a node's lives: later lives have larger ones,
and no two lives have the same.

    boot = milliseconds since the epoch << 16 | 16 random bits

A clock may go back and a disk may be lost, so a life cannot always know the number of the one before
it. Where it is told one, it takes the next millisecond with new random bits, not that number plus one:
a second life that is told the same would take the same.
"""

from typing import Final

from smg_mesh.swim.effects import Rng

BOOT_MAX: Final = (1 << 64) - 1
RANDOM_BITS: Final = 16


def first_boot(wall_ms: int, rng: Rng, *, kept: int) -> int:
    """Return the number of a new life by the clock, larger than `kept`, the last one, in any case."""
    boot = max(0, wall_ms) << RANDOM_BITS | rng.getrandbits(RANDOM_BITS)
    return boot if boot > kept else boot_after(kept, rng)


def boot_after(known: int, rng: Rng) -> int:
    """Return a number larger than `known`, which is below `BOOT_MAX`."""
    later = ((known >> RANDOM_BITS) + 1) << RANDOM_BITS | rng.getrandbits(RANDOM_BITS)
    return min(later, BOOT_MAX)
