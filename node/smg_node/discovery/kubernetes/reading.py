"""Reading: what one object of Kubernetes is as workers; and the cache of those of all objects of a source."""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Final, TypeAlias

from msgspec import Raw

from smg_node.discovery.sighting import Endpoint, Sighting, SightingState, Unusable

ObjectKey: TypeAlias = tuple[str, str]
"""Namespace and name."""

UNUSABLE_SHOWN_MAX: Final = 64
"""What operators read of; the rest is said in a number."""
GONE_MAX: Final = 16_384
"""As many as there may be workers."""

_RANK: Final[Mapping[SightingState, int]] = {
    SightingState.READY: 2,
    SightingState.UNREADY: 1,
    SightingState.LEAVING: 0,
}


@dataclass(frozen=True, slots=True)
class Reading:
    """What one object shows. `created` orders those that stand at one address; text as the API server writes time.

    `ends`: it was ordered to end or did, so that its disappearance needs no second look. `is_spare`: what it shows others
    show too, at other addresses, as long as there are others.
    """

    sightings: tuple[Sighting, ...] = ()
    unusable: tuple[Unusable, ...] = ()
    created: str = ""
    ends: bool = False
    is_spare: bool = False


ReadObject: TypeAlias = Callable[[Raw], tuple[ObjectKey, str, Reading]]
"""Returns an object's key, version and reading; NotUnderstoodError if it is none."""


class ObjectCache:
    """Readings of all objects of a source, and the endpoints whose end was told."""

    def __init__(self) -> None:
        self._readings: dict[ObjectKey, Reading] = {}
        self._gone: dict[Endpoint, int] = {}
        self._lists = 0

    def __len__(self) -> int:
        return len(self._readings)

    def put(self, key: ObjectKey, reading: Reading) -> bool:
        """Take the object as it is now; true if anything of it is another than before."""
        before = self._readings.get(key)
        if before == reading:
            return False
        self._readings[key] = reading
        kept = {one.endpoint for one in reading.sightings}
        if before is not None:
            self._told_gone(before, kept, is_told=reading.ends)
        for one in reading.sightings:
            self._gone.pop(one.endpoint, None)
        return True

    def drop(self, key: ObjectKey, last: Reading) -> bool:
        """Take an object away, as it was when it was last seen; false if it was not there.

        Where it was ordered to end its endpoints are gone expressly. One that merely is not selected any more is only
        missing.
        """
        before = self._readings.pop(key, None)
        if before is None:
            return False
        self._told_gone(before, frozenset(), is_told=before.ends or last.ends)
        return True

    def replace(self, readings: Mapping[ObjectKey, Reading]) -> bool:
        """Take a whole list instead of all that was there; true if anything is another than before."""
        if self._readings == readings and not self._gone:
            return False
        before, self._readings = self._readings, dict(readings)
        self._lists += 1
        # What was told before the list before this one has been heard of.
        self._gone = {one: told for one, told in self._gone.items() if told >= self._lists - 1}
        for key, reading in before.items():
            if key not in self._readings:
                self._told_gone(reading, frozenset(), is_told=reading.ends)
        return True

    def sightings(self) -> tuple[dict[Endpoint, Sighting], tuple[Unusable, ...]]:
        """Return who stands at each endpoint, and what could not be used.

        Of two at one endpoint the better one is shown: ready before unready before leaving, then the younger one.
        """
        shown: dict[Endpoint, Sighting] = {}
        created: dict[Endpoint, str] = {}
        unusable: list[Unusable] = []
        are_spare = all(reading.is_spare for reading in self._readings.values())
        for reading in self._readings.values():
            if reading.is_spare and not are_spare:
                continue
            unusable += reading.unusable
            for one in reading.sightings:
                other = shown.get(one.endpoint)
                if other is not None:
                    first = (_RANK[one.state], reading.created, one.instance)
                    second = (_RANK[other.state], created[one.endpoint], other.instance)
                    loser, winner = (other, one) if first > second else (one, other)
                    unusable.append(
                        Unusable(loser.origin, f"{winner.origin} stands at {one.endpoint} too")
                    )
                    if winner is other:
                        continue
                shown[one.endpoint] = one
                created[one.endpoint] = reading.created
        return shown, _clipped(unusable)

    def gone(self, shown: Mapping[Endpoint, Sighting]) -> frozenset[Endpoint]:
        """Return the endpoints whose end was told and at which nobody stands again."""
        return frozenset(endpoint for endpoint in self._gone if endpoint not in shown)

    def _told_gone(self, before: Reading, kept: Set[Endpoint], *, is_told: bool) -> None:
        """Note endpoints that are not kept, where their end was told: of the object, or of themselves."""
        for one in before.sightings:
            if one.endpoint not in kept and (is_told or one.state is SightingState.LEAVING):
                self._gone.pop(one.endpoint, None)
                self._gone[one.endpoint] = self._lists
        while len(self._gone) > GONE_MAX:
            del self._gone[next(iter(self._gone))]


def _clipped(unusable: list[Unusable]) -> tuple[Unusable, ...]:
    ordered = sorted(unusable, key=lambda one: (one.origin, one.why))
    more = len(ordered) - UNUSABLE_SHOWN_MAX
    if more <= 0:
        return tuple(ordered)
    return (*ordered[:UNUSABLE_SHOWN_MAX], Unusable("", f"and {more} more"))
