"""Mutations of files: what bytes become on a bad line, in a bad program, and in bad hands."""

import random
from typing import Final

_NUMBERS: Final = (
    b"\0\0\0\0",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\0\0\0\1",
    b"\x80\0\0\0",
)


def mutated(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """Return the file with one to six changes: bits, bytes, numbers, cuts, repetitions, pieces of other files."""
    made = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        if not made:
            break
        # Half of all changes are near the beginning, where sizes and directories stand.
        at = rng.randrange(min(len(made), 64) if rng.random() < 0.5 else len(made))
        kind = rng.randrange(8)
        if kind == 0:
            made[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            made[at] = rng.randrange(256)
        elif kind == 2:
            made[at : at + 4] = rng.choice(_NUMBERS)
        elif kind == 3:
            del made[at : at + rng.randint(1, 32)]
        elif kind == 4:
            made[at:at] = made[at : at + rng.randint(1, 64)]
        elif kind == 5:
            del made[rng.randrange(len(made)) :]
        elif kind == 6:
            other = rng.choice(others)
            start = rng.randrange(len(other))
            made[at : at + 16] = other[start : start + 16]
        else:
            made[at : at + 2] = rng.randrange(1 << 16).to_bytes(2, "little")
    return bytes(made)
