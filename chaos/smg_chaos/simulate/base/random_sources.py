"""Random sources: one generator per purpose, all of them seeded from one seed.

Separate generators keep a history alike when one thing in it changes: leaving out a fault does not
shuffle the delays of every link.
"""

from hashlib import blake2b
from random import Random


def chance(seed: int, *purpose: str | int) -> Random:
    """Return the generator for this purpose; the same for the same arguments, everywhere."""
    text = "\0".join(str(part) for part in (seed, *purpose))
    return Random(int.from_bytes(blake2b(text.encode(), digest_size=16).digest(), "big"))
