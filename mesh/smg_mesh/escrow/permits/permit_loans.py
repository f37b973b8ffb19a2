"""Permit loans between two names: permits of what may be open at a time,
moved, never copied. Values only.

A *session* is one life of a lender and one of a borrower. In it the lender numbers what it gives:

    lender      counts at once as lent what it gives, has that on disk, and only then says (number, level) to that life
    borrower    goes by a number that is larger than its last one: then its level *is* that. Of itself it only lowers
                its level: it uses less first, and says (number, level) then
    lender      believes a level under the number it gave last, as far as it is lower: at one number it never rises

So what a lender counts as lent is never less than what the borrower goes by, whatever is lost,
repeated or late. A new life on either side begins a session with number 0 and the level there is:
in the same process what it was, else none. A node that has heard of a larger life of a lender takes
nothing from a smaller one any more, and says so in all it says: then the first word of a session is
the truth, also for a lender that has lost its disk.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from smg_mesh.escrow.messages.messages import Minted
from smg_mesh.escrow.spendable_share import Share

LENT: Final = "!lent\x1f"
"""On disk: (this, NAME, another \\x1f, KEY; revision) → what NAME may have of it. The largest revision counts."""
WHOLE_KEY: Final = "!lent"
"""On disk: this is all that was lent."""
_NEVER_MS: Final = -3_600_000


@dataclass(slots=True)
class Lent:
    """Loan as its lender counts it: what one name has of one key, at most."""

    level: int = 0
    number: int = 0
    boot: int = 0
    """The life of the borrower that this session is with; 0: it has said nothing yet."""
    revision: int = 0
    written: int = 0
    """Up to this revision it is on disk."""
    needed: int = 0
    """This revision has to be, before anything is said."""
    dirty: bool = False
    """What it holds is less than the disk says: to be written when there is time."""
    heard_ms: int = 0
    said_ms: int = 0
    tried_ms: int = 0
    answer: bool = False
    """A word is due, as soon as the disk has it."""

    @property
    def told(self) -> bool:
        """Whether the borrower may be told: the disk has it."""
        return self.written >= self.needed

    def hear(self, boot: int, number: int, level: int, *, now_ms: int) -> bool:
        """Take what the borrower says to this life; return whether the level is another one now."""
        if boot < self.boot:
            return False
        self.heard_ms = now_ms
        before = self.level
        if boot > self.boot:
            self.boot, self.number, self.level = boot, number, level
            self.needed = 0
        elif number == self.number:
            self.level = min(self.level, level)
        if self.level != before:
            self.dirty = True
        return self.level != before

    def give(self, more: int, revision: int) -> None:
        """Count so much more as lent; it may be said when that revision is on disk."""
        self.level += more
        self.number += 1
        self.revision = self.needed = revision
        self.dirty = False

    def take_back(self) -> None:
        """Count nothing as lent any more: a borrower that has some is told so when it speaks."""
        self.level = self.needed = 0
        self.number += 1
        self.dirty = True

    def begin_anew(self) -> None:
        """Begin a session as another life: the level is what it may have, until it says what it has."""
        self.boot = self.number = self.needed = 0
        self.answer = False


@dataclass(slots=True)
class Borrowed:
    """Loan as its borrower has it: what this node has of one key of one lender."""

    level: int = 0
    number: int = 0
    heard_ms: int = 0
    said_ms: int = -1
    owed: int = 0
    """Of that: wanted back, as soon as it is free."""
    stale: bool = False
    """The lender was not heard of for long: nothing new is admitted on it."""

    def take(self, number: int, level: int) -> None:
        """Go by what the lender gave last."""
        if number > self.number:
            self.number, self.level = number, level
            self.owed = min(self.owed, level)

    def lower(self, less: int) -> None:
        """Have so much less from now on."""
        assert 0 <= less <= self.level
        self.level -= less
        self.owed = max(0, self.owed - less)


@dataclass(slots=True)
class Loans:
    """All loans of one process, by key and name."""

    lent: dict[str, dict[str, Lent]] = field(default_factory=dict)
    held: dict[str, dict[str, Borrowed]] = field(default_factory=dict)
    lives: dict[str, int] = field(default_factory=dict)
    """The largest boot of each name that was heard of."""
    revision: int = 0
    """Of what is on disk, or was meant to be, the largest."""

    def lent_of(self, key: str) -> int:
        """Return what others have of this node's part."""
        return sum(one.level for one in self.lent.get(key, {}).values())

    def lent_to(self, key: str, name: str) -> Lent:
        """Return what a name has of it."""
        return self.lent.setdefault(key, {}).setdefault(name, Lent())

    def held_from(self, key: str, name: str) -> Borrowed:
        """Return what this node has of that name's part."""
        return self.held.setdefault(key, {}).setdefault(name, Borrowed())

    def see(self, name: str, boot: int) -> None:
        """Learn that there is that life of a name: nothing of a smaller one counts from now on."""
        if boot > self.lives.get(name, 0):
            self.lives[name] = boot
            for held in self.held.values():
                if name in held:
                    held[name].number = 0

    def begin_anew(self) -> None:
        """Go on as another life in the same process."""
        for lent in self.lent.values():
            for one in lent.values():
                one.begin_anew()
        for held in self.held.values():
            for borrowed in held.values():
                borrowed.number = 0

    def recall(self, remembered: Mapping[tuple[str, int], int]) -> bool:
        """Take what the disk says was lent; return whether that is all there is."""
        for (key, revision), level in remembered.items():
            if key.startswith(LENT):
                name, _, of = key[len(LENT) :].partition("\x1f")
                one = self.lent_to(of, name)
                if revision > one.revision:
                    one.revision = one.written = revision
                    one.level = level
                    self.revision = max(self.revision, revision)
        return any(key == WHOLE_KEY for key, _ in remembered)

    def rows(self) -> Iterator[Minted]:
        """Yield what is to be on disk of everything that was ever lent."""
        for key, lent in self.lent.items():
            for name, one in lent.items():
                yield row_of(key, name, one)

    def written(self, row: Minted) -> Lent | None:
        """Learn that a row is on disk; return whose it is."""
        name, _, key = row.key[len(LENT) :].partition("\x1f")
        one = self.lent.get(key, {}).get(name)
        if one is not None:
            one.written = max(one.written, row.window)
        return one

    def forget(self, *, quiet_ms: int, now_ms: int) -> None:
        """Drop what is nothing, and was not spoken of for so long that no packet is under way."""
        for key, lent in list(self.lent.items()):
            for name, one in list(lent.items()):
                quiet = now_ms - max(one.heard_ms, one.said_ms) > quiet_ms
                if not one.level and not one.dirty and one.told and quiet:
                    del lent[name]
            if not lent:
                del self.lent[key]
        for key, held in list(self.held.items()):
            for name, borrowed in list(held.items()):
                quiet = now_ms - max(borrowed.heard_ms, borrowed.said_ms) > quiet_ms
                if not borrowed.level and quiet:
                    del held[name]
            if not held:
                del self.held[key]


def row_of(key: str, name: str, one: Lent) -> Minted:
    """Return what is to be on disk of a loan."""
    return Minted(f"{LENT}{name}\x1f{key}", one.revision, one.level)


def without_lent(
    remembered: Mapping[tuple[str, int], int] | None,
) -> Mapping[tuple[str, int], int] | None:
    """Return the rest of what a disk says."""
    if remembered is None:
        return None
    return {
        place: total for place, total in remembered.items() if not place[0].startswith(WHOLE_KEY)
    }


@dataclass(slots=True)
class Peer:
    """Free permits of one key at one name, as it said; -1: it was not asked yet."""

    free: int = -1
    heard_ms: int = 0
    asked_ms: int = _NEVER_MS
    waits: bool = False
    """It has not answered yet."""


@dataclass(slots=True)
class Watch:
    """Demand for one key here, as far as it is known."""

    since_ms: int
    offered: int = 0
    demand_ms: int = _NEVER_MS
    short_ms: int = _NEVER_MS
    asked_ms: int = _NEVER_MS
    called_ms: int = _NEVER_MS
    peak: int = 0
    peak_before: int = 0
    peers: dict[str, Peer] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    """How many of what it lent are wanted back, by name."""

    def look(self, share: Share | None, *, now_ms: int) -> None:
        """See what was asked for since the last look."""
        if share is None:
            return
        if share.offered != self.offered:
            self.offered, self.demand_ms = share.offered, now_ms
        self.peak = max(self.peak, share.spent + share.wanted)
