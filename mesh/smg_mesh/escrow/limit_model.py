"""Limit model: limits, windows, slots, the roster, and what stands with nodes without a message.

    limit         so many units a window, for one key; or so many at a time, without a window
    window        numbered: floor(wall clock / length); every charge names exactly one (key, window)
    right         permission to charge one unit to one (key, window), held by exactly one node
    standing      rights that each name of the roster has in every window, owner or no owner
    owner         the node that mints the rest, for the keys of its slots
    roster        the names whose votes count for majorities, visible or not
    key           "SCOPE#UNIT/WINDOW_MS"; what all limits of one scope have in common, decides about the slot

For every key and window, at every moment, whatever clocks and network do:

    spent + shares + pools + in flight  <=  minted + names x standing right  <=  amount
"""

from collections.abc import Collection, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

Unit: TypeAlias = Literal[
    "requests", "tokens", "input_tokens", "output_tokens", "cost", "concurrent"
]
Mode: TypeAlias = Literal["strict", "balanced", "available"]

SLOTS: Final = 64
"""Keys are hashed to so many slots; each slot has at most one owner."""
ROSTER_SLOT: Final = SLOTS
"""One more slot, whose owner may change the roster."""
LEASE_MS: Final = 1_000
"""A promise lasts so long, from its receipt on the voter's own clock."""
GUARD_MS: Final = 100
"""An owner stops so much earlier: its clock and the voters' may run a little apart."""
RENEW_MS: Final = 250
SILENT_AFTER_BOOT_MS: Final = 1_100
"""A voter that has just begun to live may have promised something it does not remember."""
SHORT_MS: Final = 2_000
"""Windows up to this length are minted whole, before they open."""
KEY_CHARS_MAX: Final = 224
AMOUNT_MAX: Final = 1 << 53
_SLOTS_CACHED: Final = 1_024
"""Of so many keys the slot is not worked out again: those that are hot."""
_SCORES_CACHED: Final = 8_192
"""Of all slots for a hundred names; they are asked for whenever an owner is looked for."""
NAMES_MAX: Final = 1_024


class Life(NamedTuple):
    """One life of a member: a restarted node is another one, and has none of the rights of the one before."""

    name: str
    boot: int


class Limit(msgspec.Struct, frozen=True):
    """A limit of the cluster. `window_ms` is 0 for what is open at a time (`concurrent`).

    `standing` is the share of the amount that stands with the nodes. `version` grows with each
    change of it, and `older` is (amount, standing) of earlier versions that a node that has not
    heard may still go by. Without `volatile`, what was minted of windows of 10 s and more is
    written to disk before it is voted for.
    """

    key: str
    unit: Unit
    amount: int
    window_ms: int
    mode: Mode = "balanced"
    standing: float = 0.5
    version: int = 0
    older: tuple[tuple[int, float], ...] = ()
    volatile: bool = False
    minted_before: tuple[tuple[int, float, int], ...] = ()
    """(amount, standing, until ms) of earlier versions by which an owner may still mint more than by this one, in windows
    that begin before that moment. What stands leaves room for it."""
    lower: tuple[tuple[int, float], ...] = ()
    """(amount, standing) of earlier versions that allow less: what may have counted in windows that are over."""

    @property
    def has_past(self) -> bool:
        """Whether another version of it may have counted in windows that are over."""
        return bool(self.older or self.lower)

    @property
    def least_amount(self) -> int:
        """The smallest of the amounts that some version has: what counts in windows that are over, if that is unknown."""
        return min((self.amount, *(amount for amount, _ in (*self.older, *self.lower))))

    @property
    def least(self) -> "Limit":
        """Its version under which the least stands, as if there had been no other: what counts in windows that were over."""
        versions = ((self.amount, self.standing), *self.older, *self.lower)
        amount, standing = min(versions, key=lambda version: version[0] * version[1])
        return Limit(self.key, self.unit, amount, self.window_ms, self.mode, standing)

    def standing_right(self, divisor: int, *, began_ms: int | None = None) -> int:
        """Return what one of so many names may spend of a window, owner or no owner; 0 for no names.

        `began_ms`: when the window began; in windows of some time after the part that stands was raised it is less,
        as owners may mint by what was before. Without: as the limit says it.
        """
        right = _right(self.amount, self.standing, divisor)
        if began_ms is None or not right:
            return right
        for amount, standing, until_ms in self.minted_before:
            if began_ms < until_ms:
                more = max(0, self.amount - amount)
                right = min(right, more // divisor + _right(amount, standing, divisor))
        return right

    def mintable(
        self, roster: "Roster", current: Collection[str], *, began_ms: int | None = None
    ) -> int:
        """Return what may be minted of one window in all, beside what stands with the names of the roster.

        `current` are the names that are known to go by this version of the limit; others may go by
        an older one. What stands is counted as it may be now, and as it will be once newcomers have
        their part: that may be a little more, for parts are whole numbers, and begins without
        another word. In windows that began before any name went by this roster, the parts are those
        of rosters before it: of whatever size, they add up to no more than the part of the whole
        that stands.
        """
        count = len(roster.names)
        now, soon = 0, 0
        for name, divisor in zip(roster.names, roster.divisors, strict=True):
            known = () if name in current else self.older
            now += self._most_standing(known, divisor, began_ms)
            soon += self._most_standing(known, count, began_ms)
        stands = max(now, soon)
        if began_ms is not None and began_ms < roster.since_ms:
            whole = ((self.amount, self.standing), *self.older)
            stands = max(stands, *(int(standing * amount) for amount, standing in whole))
        return max(0, self.amount - stands)

    def _most_standing(
        self, older: Sequence[tuple[int, float]], divisor: int, began_ms: int | None
    ) -> int:
        right = self.standing_right(divisor, began_ms=began_ms)
        return max((right, *(_right(*version, divisor) for version in older)))


class Roster(msgspec.Struct, frozen=True):
    """The names whose votes count, sorted. Of two rosters the one with more names counts, then the smaller id.

    A name that knows this roster divides what stands by the number of names. `divisors` says, name
    by name, by how little a name may still divide that knows only an older roster, and is 0 for
    names that have no standing right yet: as long as some name divides by less, there is nothing
    for them.
    """

    id: bytes
    version: int
    names: tuple[str, ...]
    divisors: tuple[int, ...]
    since_ms: int = 0
    """Nobody goes by it before this moment of its wall clock: others may go by an older one in earlier windows."""
    proven: bool = False
    """No other first roster with a name in common can be proven, too."""
    places: tuple[tuple[int, int], ...] = ()
    """On the disk of one name only: its place, and of how many, in rosters before, as long as that matters (`permits`)."""

    @property
    def majority(self) -> int:
        """How many of them are more than half."""
        return len(self.names) // 2 + 1

    @property
    def counts(self) -> bool:
        """Whether nodes may go by it: it is proven, or follows one that was."""
        return self.proven or self.version > 1

    def divisor(self, name: str) -> int:
        """Return what `name`, knowing this roster, divides by; 0 if it has no standing right."""
        if name not in self.names or not self.divisors[self.names.index(name)]:
            return 0
        return len(self.names)


@lru_cache(_SLOTS_CACHED)
def slot_of(key: str) -> int:
    """Return the slot of a key: the same on every node, and for all limits of one scope."""
    scope = key.partition("#")[0]
    return int.from_bytes(blake2b(scope.encode(), digest_size=8).digest(), "big") % SLOTS


@lru_cache(_SCORES_CACHED)
def score(slot: int, name: str) -> int:
    """Return how much `name` is wanted as the owner of a slot; the largest of those alive is its candidate."""
    person = b"smg-slot"
    digest = blake2b(f"{slot}:{name}".encode(), digest_size=8, person=person).digest()
    return int.from_bytes(digest, "big")


def window_of(wall_ms: int, window_ms: int) -> int:
    """Return the number of the window that a moment lies in; 0 for what has no windows."""
    return wall_ms // window_ms if window_ms else 0


def _right(amount: int, standing: float, divisor: int) -> int:
    return int(standing * amount / divisor) if divisor else 0
