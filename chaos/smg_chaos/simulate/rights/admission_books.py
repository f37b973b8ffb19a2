"""Admission books: amounts admitted by (key, window), counted at the point of admission.

They count whatever the nodes say of themselves. How much may be admitted, depends on the mode of
the limit:

    strict       the amount, never more
    balanced     the amount, and of every node that saw no majority its fair part of what does not stand
    available    the amount, and for every node that saw no majority all that does not stand, once

A version that is in force while a window runs by the clock of its owner, may count in it, also where that clock is
behind all others.

A node that saw no majority up to `LINGERS_US` before a window may still live on what it borrowed.

One thing is not promised: a life whose clock was far ahead spends what stands with it in windows to come, and when
it dies and its disk is lost too, the next one with a right clock does not know. Such windows are told apart, and
counted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from smg_chaos.simulate.base.virtual_clock import MS, SECOND
from smg_chaos.simulate.hosts.host import EPOCH_MS
from smg_chaos.simulate.hosts.ports import HasAgenda, HasNotes, PromiseReport
from smg_chaos.simulate.rights.definitions import Definitions
from smg_mesh.escrow.book_rows import Minting
from smg_mesh.escrow.limit_model import Life, Limit, window_of

LINGERS_US: Final = 6 * SECOND
"""So long after it sees a majority again a node may wait for the first grant of an owner."""
_EARLY_US: Final = 300 * MS
_CLOCKS_US: Final = 250 * MS
"""Clocks of nodes that differ by that much smear a window."""


@dataclass(slots=True)
class Page:
    """One window of one limit."""

    key: str
    window: int
    begins_us: int
    ends_us: int
    touched_us: tuple[int, int]
    """When it was charged to, first and last; by wrong clocks that may be at any time."""
    admitted: int = 0
    offered: int = 0
    refused: int = 0
    owed: int = 0
    """Spent without a right, by answers that became longer than what was reserved."""
    ceiling: int = 0
    """What was allowed when it was worked out last."""
    states: dict[str, int] = field(default_factory=dict)
    """What was admitted, by the state of the share."""
    lives: dict[Life, int] = field(default_factory=dict)
    """What each life spent, less what it settled."""
    early: dict[str, Life] = field(default_factory=dict)
    """Lives by name that were in it before it began by any clock that is nearly right."""
    alone: dict[str, int] = field(default_factory=dict)
    """Names that may have seen no majority, and the size of the roster they knew."""

    @property
    def length_us(self) -> int:
        """How long it is."""
        return self.ends_us - self.begins_us


class BookedWorld(HasAgenda, HasNotes, PromiseReport, Protocol):
    """The world of which the books are kept."""


class Books:
    """All pages of a world."""

    def __init__(self, world: BookedWorld, definitions: Definitions, *, phase_ms: int = 0) -> None:
        self._world = world
        self._phase_ms = phase_ms
        self._definitions = definitions
        self._pages: dict[tuple[str, int], Page] = {}
        self._forgetful: dict[str, None] = {}
        self._strict = {
            key: all(ruling.limit.mode == "strict" for ruling in rulings)
            for key, rulings in definitions.rulings.items()
        }

    def page(self, key: str, window: int, window_ms: int) -> Page:
        """Return the page of a window, a new one if need be."""
        found = self._pages.get((key, window))
        if found is None:
            now_us = self._world.agenda.now_us
            begins_us = (window * window_ms - EPOCH_MS - self._phase_ms) * MS
            found = Page(key, window, begins_us, begins_us + window_ms * MS, (now_us, now_us))
            self._pages[key, window] = found
            found.ceiling = self.amount(found)
        return found

    def charged(self, page: Page, life: Life, cost: int, state: str) -> None:
        """Count what was admitted; more than there is, is a broken promise of a strict limit."""
        self.entered(page, life)
        page.admitted += cost
        page.states[state] = page.states.get(state, 0) + cost
        page.lives[life] = page.lives.get(life, 0) + cost
        if page.admitted > page.ceiling and self._strict[page.key]:
            page.touched_us = (page.touched_us[0], self._world.agenda.now_us)
            page.ceiling = self.amount(page)
            if page.admitted > page.ceiling:
                self._too_much(page, page.ceiling)
                page.ceiling = 1 << 60

    def minted(self, row: Minting, window_ms: int, *, wall_ms: int) -> None:
        """Note that an owner, by whose clock a window runs, went by what was in force then."""
        if window_of(wall_ms, window_ms) == row.window:
            page = self.page(row.key, row.window, window_ms)
            page.touched_us = (page.touched_us[0], self._world.agenda.now_us)

    def forgot(self, name: str) -> None:
        """Note that a life begins without what the one before had on disk."""
        self._forgetful[name] = None

    def entered(self, page: Page, life: Life) -> None:
        """Note who is in a window long before it begins."""
        if self._world.agenda.now_us < page.begins_us - _EARLY_US:
            page.early.setdefault(life.name, life)

    def settled(self, page: Page, life: Life, unused: int) -> None:
        """Count what was given back in its own window."""
        page.admitted -= unused
        page.lives[life] -= unused

    def amount(self, page: Page) -> int:
        """Return the amount of the window: the largest of all versions that may count in it."""
        return max(limit.amount for limit in self._limits(page))

    def allowed(self, page: Page) -> int:
        """Return what may be admitted at most, in the mode of the limit."""
        limits = self._limits(page)
        extra = sum(max(_extra(limit, names) for limit in limits) for names in page.alone.values())
        return max(limit.amount for limit in limits) + extra

    def close(self) -> None:
        """Look at all windows of modes that allow more for who is alone."""
        for page in self.pages():
            if self._strict[page.key]:
                continue
            allowed = self.allowed(page)
            if page.admitted > allowed:
                self._too_much(page, allowed)

    def pages(self) -> Iterator[Page]:
        """Yield them in the order in which they were begun."""
        yield from self._pages.values()

    def limit(self, page: Page) -> Limit:
        """Return the version that counts at the end of the window."""
        return self._limits(page)[-1]

    def _limits(self, page: Page) -> Sequence[Limit]:
        begins_us = min(page.begins_us - _CLOCKS_US, page.touched_us[0])
        ends_us = max(page.ends_us + _CLOCKS_US, page.touched_us[1])
        return self._definitions.in_force(page.key, begins_us, ends_us) or [
            self._definitions.newest(page.key)
        ]

    def is_smeared(self, page: Page) -> bool:
        """Return whether a name was in the window early, and again in a life that cannot know; count it."""
        smeared = any(
            name in self._forgetful and other.name == name and other != life
            for name, life in page.early.items()
            for other in page.lives
        )
        if smeared:
            notes = self._world.notes
            notes["early_lives"] = notes.get("early_lives", 0) + 1
        return smeared

    def _too_much(self, page: Page, allowed: int) -> None:
        if self.is_smeared(page):
            return
        states = ", ".join(f"{cost} {state}" for state, cost in page.states.items())
        self._world.broken(
            f"{page.admitted} of {allowed} were admitted in window {page.window} of {page.key}, which began "
            f"at {page.begins_us / SECOND:.3f} s ({states})"
        )


def _extra(limit: Limit, names: int) -> int:
    """Return what one node may have beyond the amount, alone, of a roster of that many names."""
    if limit.mode == "strict" or not names:
        return 0
    stands = names * limit.standing_right(names)
    rest = limit.amount - stands
    return rest if limit.mode == "available" else rest // names
