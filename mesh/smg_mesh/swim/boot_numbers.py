"""Boot numbers: ids of a node's lives. Of two living processes with one name the larger one keeps it.

    boot = milliseconds << 16 | 16 random bits

So the numbers say who was there first:

    first life of a data dir    2^41 ms - the time since the epoch: the later it starts, the smaller
    next life of a data dir     the last number kept there, and up to 16 ms
    told of a number that is    that number, and 2^20 ms: ahead of the next lives of the data dir that
      no living process's       it belonged to, which come too late

A restart is larger than what its data dir kept, and takes over at once, wherever it starts. A stranger
under a name that is taken is smaller, learns so from the first member it greets, and gives way; nothing is
kept of its number, so it does not come closer by trying again. Numbers of clocks (milliseconds since the
epoch), as earlier releases took them, are larger than those of first lives and are followed as any other.
Random bits: no two lives have one number, also where the disk kept nothing or two are told the same.
"""

from typing import Final

from smg_mesh.swim.effects import Rng

BOOT_MAX: Final = (1 << 64) - 1
RANDOM_BITS: Final = 16
FIRST_LIVES_MS: Final = 1 << 41
"""The year 2039; first lives count down to it, and stay below the clock's milliseconds of 2004 and later."""
CLOCK_MS_MIN: Final = 1 << 40
"""The year 2004. A clock that shows less was never set, and its life is nobody's senior."""
RESTART_MS_BITS: Final = 4
"""The distance of a restart is random, as the last number may not be on a disk that was full; and small:
who restarts again and again, for whatever reason, must not catch up with who was there before."""
STARTING_MS: Final = 15_000
"""Who meets the owner of its name so soon after its start is the one that came second."""
OUTLIVED_MS: Final = 1 << 20
"""The distance to the number of a process that is gone: many restarts of its data dir stay behind."""


def first_boot(wall_ms: int, rng: Rng, *, kept: int) -> int:
    """Return the number of a new life: the one after `kept`, the last of its data dir; 0: it has none."""
    if kept:
        return boot_after(kept, rng, by_ms=1 + rng.getrandbits(RESTART_MS_BITS))
    is_set = CLOCK_MS_MIN <= wall_ms < FIRST_LIVES_MS
    left_ms = FIRST_LIVES_MS - wall_ms if is_set else 0
    return max(1, left_ms << RANDOM_BITS | rng.getrandbits(RANDOM_BITS))


def boot_after(known: int, rng: Rng, *, by_ms: int = 1) -> int:
    """Return a number larger than `known`, which is below `BOOT_MAX`, by about so many milliseconds."""
    later = ((known >> RANDOM_BITS) + by_ms) << RANDOM_BITS | rng.getrandbits(RANDOM_BITS)
    return min(later, BOOT_MAX)
