"""Equal runs: splits a sequence into runs of equal values, as neighbours in a chain share a set of
holders. Pure.
"""

from collections.abc import Sequence


def distinct(hashes: Sequence[int]) -> Sequence[int]:
    """Return each of them once; what comes from elsewhere may name one twice."""
    count = len(hashes)
    return hashes if count < 2 or len(set(hashes)) == count else list(dict.fromkeys(hashes))


def run_end(values: list[int], at: int) -> int:
    """Return where the run of equal values that begins at `at` ends."""
    value, count = values[at], len(values)
    if values[-1] == value:
        # Usually all the rest is one run, and that is seen at once.
        rest = values[at:] if at else values
        if rest.count(value) == count - at:
            return count
    at += 1
    while at < count and values[at] == value:
        at += 1
    return at
