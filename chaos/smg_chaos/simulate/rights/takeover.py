"""Takeover times: how long a limit has no owner after a crash, and what stays unused meanwhile."""

from dataclasses import dataclass
from typing import Final

from smg_chaos.simulate.base.virtual_clock import MS, SECOND
from smg_chaos.simulate.outcome import Figures
from smg_chaos.simulate.rights.rights_faults import KillOwner, RuledWorld, owner_of
from smg_chaos.simulate.rights.rights_world import Market

_LOOK_US: Final = 10 * MS
_LIMIT_US: Final = 10 * SECOND
_SOON_US: Final = 3 * SECOND


@dataclass(frozen=True, slots=True)
class _Death:
    """An owner's."""

    key: str
    at_us: int


class Takeovers:
    """All takeovers of one history."""

    def __init__(self, world: RuledWorld, market: Market) -> None:
        self._world = world
        self._market = market
        self._deaths: list[_Death] = []
        self._took_s: list[float] = []

    def expect(self, deed: KillOwner) -> None:
        """Look for another owner from then on, if there is one to be killed."""
        self._world.agenda.deed(deed.at_ms * MS, self._dies, deed)

    def _dies(self, deed: KillOwner) -> None:
        if owner_of(self._world, deed.key) is not None:
            death = _Death(deed.key, self._world.agenda.now_us)
            self._deaths.append(death)
            self._world.agenda.deed(self._world.agenda.now_us + _LOOK_US, self._look, death)

    def _look(self, death: _Death) -> None:
        passed_us = self._world.agenda.now_us - death.at_us
        if owner_of(self._world, death.key) is not None:
            self._took_s.append(passed_us / SECOND)
        elif passed_us < _LIMIT_US:
            self._world.agenda.deed(self._world.agenda.now_us + _LOOK_US, self._look, death)
        else:
            self._took_s.append(passed_us / SECOND)  # or longer: the rest may be no majority

    def figures(self) -> Figures:
        """Return how long it took each time, and what was left unused of windows soon and later after it."""
        if not self._deaths:
            return {}
        soon: list[float] = []
        later: list[float] = []
        books = self._market.books
        for death in self._deaths:
            for page in books.pages():
                if page.key != death.key or page.length_us > SECOND:
                    continue
                after_us = page.begins_us - death.at_us
                unused = max(0.0, 1.0 - page.admitted / books.amount(page))
                if 0 <= after_us < _SOON_US:
                    soon.append(unused)
                elif (
                    _SOON_US <= after_us < 2 * _SOON_US and page.ends_us < self._world.agenda.now_us
                ):
                    later.append(unused)
        return {
            "takeover_s": list(self._took_s),
            "unused_at_once": soon,
            "unused_3s_later": later,
        }
