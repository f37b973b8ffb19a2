"""Limit judge: adds up the books of all nodes after every step, against the amount of each window.

Of every window the last row of each life is kept, also of those that are over, so that what a dead node
still had counts as long as the window does. What one side wrote and the other has not, is in flight:

    spent - owed + left  +  pools  +  given and not yet arrived  +  returned and not yet arrived
        <=  the amount, and what was borrowed

Each row has to be right by itself too, what a node was given has to have been given, and what a row says was
spent has to be what was spent. Rows are compared with what they were, and only windows of which one
changed are added up again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from smg_chaos.simulate.hosts.ports import PromiseReport
from smg_chaos.simulate.rights.admission_books import Books, Page
from smg_chaos.simulate.rights.open_permits import Openings, RoomReport
from smg_mesh.escrow.book_rows import Held, Minting, Row
from smg_mesh.escrow.limit_model import Life

_SHEETS_MAX: Final = 512
"""Windows that are looked at; the oldest make room."""

_SAID_MAX: Final = 2_000
_ROOMS_EVERY: Final = 4
"""Looks after which the room that all nodes have for what is open is added up."""

_Place: TypeAlias = tuple[str, int]
_Office: TypeAlias = tuple[str, int, int]
"""(name, boot, term) of an owner."""


@dataclass(slots=True)
class _Sheet:
    """All rows of one window."""

    held: dict[Life, Held] = field(default_factory=dict)
    mintings: dict[_Office, Minting] = field(default_factory=dict)


class JudgedMarket(Protocol):
    """The rights of the world that is judged."""

    openings: Openings

    def tellers(self) -> Sequence[RoomReport]:
        """Return the rights of all that live now."""
        ...

    def took_office(self, row: Minting) -> None:
        """Take note of who owns a window for the first time."""
        ...


class JudgedRights(RoomReport, Protocol):
    """The rights of the node that is looked at."""

    me: Life

    @property
    def market(self) -> JudgedMarket:
        """The rights of the world."""
        ...

    @property
    def wall_ms(self) -> int:
        """What its wall clock shows."""
        ...


class Judge:
    """The judge of one world."""

    def __init__(self, world: PromiseReport, books: Books, *, settling: frozenset[str]) -> None:
        self._world = world
        self._books = books
        self._settling = settling
        """Keys of which more may be spent than was reserved, and paid for later."""
        self._sheets: dict[_Place, _Sheet] = {}
        self.looks = 0

    def look(self, teller: JudgedRights) -> None:
        """Take a node's rows, and add up the windows of which something is new."""
        self.looks += 1
        changed: dict[_Place, int] = {}
        permits = False
        for row in teller.core.rows():
            if not teller.window_ms(row.key):
                permits = True
            elif self._take(row, teller):
                changed[row.key, row.window] = teller.window_ms(row.key)
                if isinstance(row, Minting):
                    self._books.minted(row, teller.window_ms(row.key), wall_ms=teller.wall_ms)
        for place, window_ms in changed.items():
            self._add_up(place, window_ms, teller.me)
        if permits and self.looks % _ROOMS_EVERY == 0:
            teller.market.openings.look(teller.market.tellers())

    def _take(self, row: Row, teller: JudgedRights) -> bool:
        place = (row.key, row.window)
        sheet = self._sheets.get(place)
        if sheet is None:
            sheet = self._sheets[place] = _Sheet()
            if len(self._sheets) > _SHEETS_MAX:
                del self._sheets[next(iter(self._sheets))]
        if isinstance(row, Held):
            life = Life(row.name, row.boot)
            before = sheet.held.get(life)
            if row == before:
                return False
            sheet.held[life] = row
            self._held(row, before)
            return True
        office = (row.name, row.boot, row.term)
        known = sheet.mintings.get(office)
        if row == known:
            return False
        sheet.mintings[office] = row
        self._minting(row, known)
        if known is None:
            teller.market.took_office(row)
        return True

    # ── Rows by themselves ───────────────────────────────────────────────────

    def _held(self, row: Held, before: Held | None) -> None:
        has = row.spent - row.owed + row.left + _sum(row.returned) + row.lapsed
        got = _sum(row.given) + row.standing + row.borrowed
        if has != got:
            self._wrong(row, f"{has} became of the {got} it had", row)
        if row.left < 0:
            self._wrong(row, f"{row.left} are left", row)
        if before is not None:
            if _shrank(before.given, row.given) or _shrank(before.returned, row.returned):
                self._wrong(row, "totals went back", (before, row))
            if row.lapsed < before.lapsed:
                self._wrong(row, "less has lapsed than before", (before, row))

    def _minting(self, row: Minting, before: Minting | None) -> None:
        given = sum(given - returned for _, _, given, returned in row.given)
        has, got = row.left + given, row.minted + row.lapsed
        if has != got:
            self._wrong(row, f"{has} became of the {got} it minted", row)
        if row.left < 0:
            self._wrong(row, f"{row.left} are left in its pool", row)
        if before is not None:
            old = {(name, boot): (given, back) for name, boot, given, back in before.given}
            new = {(name, boot): (given, back) for name, boot, given, back in row.given}
            for life, (given, back) in old.items():
                now = new.get(life, (0, 0))
                if now[0] < given or now[1] < back:
                    self._wrong(row, f"what it gave to {life[0]} went back", (before, row))

    def _wrong(self, row: Row, what: str, said: object) -> None:
        self._world.broken(
            f"{row.name}, {row.key}, window {row.window}: {what}: {said}"[:_SAID_MAX]
        )

    # ── All rows of a window ─────────────────────────────────────────────────

    def _add_up(self, place: _Place, window_ms: int, who: Life) -> None:
        sheet = self._sheets.get(place)
        if sheet is None:
            return
        page = self._books.page(*place, window_ms)
        total = sum(row.left for row in sheet.mintings.values()) + self._in_flight(sheet)
        # What an owner has who is alone on its side, is beyond the amount by its mode: `Books` has the bound.
        borrowed = sum(row.minted for row in sheet.mintings.values() if not row.term)
        for life, row in sheet.held.items():
            total += row.spent - row.owed + row.left
            borrowed += row.borrowed
            if life == who:
                if row.standing:
                    self._books.entered(page, life)
                self._spent(page, life, row)
        if total > page.ceiling + borrowed:
            page.ceiling = self._books.amount(page)
            if total > page.ceiling + borrowed and not self._is_smeared(page, sheet):
                rows = _all_told(sheet)
                self._world.broken(
                    f"{total} rights to {place[0]} exist in window {place[1]}, {page.ceiling} may "
                    f"({borrowed} borrowed): {rows}"
                )
                page.ceiling = 1 << 60

    def _is_smeared(self, page: Page, sheet: _Sheet) -> bool:
        """Return whether two lives of a name had what stands with it, because of a clock that was far ahead."""
        lives = [life for life, row in sheet.held.items() if row.standing]
        for life in lives:
            page.lives.setdefault(life, 0)
        return self._books.is_smeared(page)

    def _spent(self, page: Page, life: Life, row: Held) -> None:
        if page.key in self._settling:
            return
        really = page.lives.get(life, 0)
        if row.spent != really:
            self._wrong(row, f"{really} were spent, it says {row.spent}", row)

    def _in_flight(self, sheet: _Sheet) -> int:
        """Return what was sent off and has not arrived; what arrived and was not sent is wrong."""
        flying = 0
        said: dict[tuple[Life, int], tuple[int, int]] = {}
        for minting in sheet.mintings.values():
            for name, boot, given, returned in minting.given:
                to = (Life(name, boot), minting.term)
                before = said.get(to, (0, 0))  # Who is alone has no term, and there may be two.
                said[to] = (before[0] + given, before[1] + returned)
        for life, row in sheet.held.items():
            back = _by_term(row.returned)
            for term, arrived in _by_term(row.given).items():
                given, _ = said.get((life, term), (0, 0))
                if arrived > given:
                    self._wrong(row, f"was given {arrived} under term {term}, of {given}", row)
                flying += max(0, given - arrived)
            for term, returned in back.items():
                heard = said[life, term][1] if (life, term) in said else 0
                flying += max(0, returned - heard)
        flying += _nowhere(said, sheet.held)
        return flying


def _nowhere(said: Mapping[tuple[Life, int], tuple[int, int]], held: Mapping[Life, Held]) -> int:
    """Return what was given to lives that have no row of that term yet."""
    flying = 0
    for (life, term), (given, _) in said.items():
        row = held.get(life)
        if row is None or all(term != one for one, _ in row.given):
            flying += given
    return flying


def _by_term(totals: tuple[tuple[int, int], ...]) -> dict[int, int]:
    sums: dict[int, int] = {}
    for term, total in totals:
        sums[term] = sums.get(term, 0) + total
    return sums


def _all_told(sheet: _Sheet) -> str:
    rows: list[Row] = [*sheet.held.values(), *sheet.mintings.values()]
    return "; ".join(_told(row) for row in rows)


def _told(row: Row) -> str:
    """Return a row in few words, for the story of what went wrong."""
    life = f"{row.name}#{row.boot % 10_000}"
    if isinstance(row, Minting):
        given = ", ".join(f"{name} {to - back}" for name, _, to, back in row.given)
        return f"{life} under term {row.term} minted {row.minted}, {row.left} left, gave {given or 'nothing'}"
    had = f"{row.standing} stood, {_sum(row.given)} given, {row.borrowed} borrowed"
    went = (
        f"{row.spent} spent ({row.owed} owed), {_sum(row.returned)} returned, {row.lapsed} lapsed"
    )
    return f"{life} {had}, {went}, {row.left} left"


def _sum(totals: tuple[tuple[int, int], ...]) -> int:
    return sum(total for _, total in totals)


def _shrank(before: tuple[tuple[int, int], ...], now: tuple[tuple[int, int], ...]) -> bool:
    new = _by_term(now)
    return any(new.get(term, 0) < total for term, total in _by_term(before).items())
