"""Random draws from the one source of chance that a core was given, so that a seed is a history."""

from collections.abc import Callable, MutableSequence, Sequence
from typing import TypeVar

from smg_mesh.swim.effects import Rng

T = TypeVar("T")


def below(rng: Rng, bound: int) -> int:
    """Return an integer in [0, `bound`)."""
    return int(rng.random() * bound)


def shuffle(rng: Rng, items: MutableSequence[T]) -> None:
    """Put `items` into a random order, in place (Fisher and Yates)."""
    for last in range(len(items) - 1, 0, -1):
        chosen = int(rng.random() * (last + 1))
        items[last], items[chosen] = items[chosen], items[last]


def sample(rng: Rng, items: Sequence[T], count: int, wanted: Callable[[T], bool]) -> list[T]:
    """Return up to `count` different items that are wanted.

    Long sequences are not copied: a bounded number of draws finds `count` of many with near
    certainty, and one item less is harmless to every caller.
    """
    total = len(items)
    if total <= 4 * count + 8:
        chosen = [item for item in items if wanted(item)]
        shuffle(rng, chosen)
        return chosen[:count]
    places: dict[int, None] = {}
    for _ in range(6 * count + 8):
        place = int(rng.random() * total)
        if place not in places and wanted(items[place]):
            places[place] = None
            if len(places) == count:
                break
    return [items[place] for place in places]


def jittered(rng: Rng, span_ms: int) -> int:
    """Return `span_ms` ± 20 %, so that nodes do not march in step."""
    return round(span_ms * (0.8 + 0.4 * rng.random()))
