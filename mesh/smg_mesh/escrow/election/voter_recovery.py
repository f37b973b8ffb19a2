"""Voter recovery: gets forgotten or missing records back, page by page,
from a majority of the others.

Two kinds of need, one way:

    sync      after each change of the roster, from a majority, this voter among it. What a majority
              of the roster before had stored is thereby stored by every synced voter; a change may
              follow another only when a majority is synced, so that no total is ever left with a
              minority
    recovery  after a boot, from voters that are synced. What a majority had stored, this voter's
              former life among them, a majority of the others still has at least once

What the answering voter may itself have forgotten, it says: windows that began before a moment. A
voter that learns from it is blind for them too. So no voter waits for another to be whole: the
blindness of boots is passed on, and then ends.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from smg_mesh.escrow.election.minted_records import Records
from smg_mesh.escrow.limit_model import Life, Roster
from smg_mesh.escrow.messages.messages import ROWS_MAX, Minted, RecordsAsk, RecordsTell

AGAIN_MS: Final = 150
PATIENT_MS: Final = 1_000
PATIENT_AFTER: Final = 20
"""Who has not answered so often is asked less often."""
FIRST_PAGE_BYTES: Final = 250
"""The first page has up to 65 terms of 11 bytes beside its rows."""
PAGE_BYTES: Final = 900


class Blind(NamedTuple):
    """Windows that began before these moments of the wall clock: something of them may be forgotten.

    For so long yet, that is: then all short windows are over that may be meant, whatever clock it was.
    """

    short_ms: int
    long_ms: int
    short_for_ms: int = 0


NOT_BLIND: Final = Blind(0, 0)


class Gathered(NamedTuple):
    """Outcome of asking: whether all that a boot made this voter forget is here
    again, and what tellers forgot.
    """

    whole: bool
    told: Blind


@dataclass(slots=True)
class _Teller:
    """One other voter, and how far its pages have been read."""

    after: tuple[str, int] = ("", 0)
    boot: int = -1
    due_ms: int = 0
    tries: int = 0
    synced: bool = True
    blind: Blind = NOT_BLIND
    read: bool = False
    read_synced: bool = False


class Recovery:
    """Both kinds of recovery of one voter."""

    def __init__(self, me: Life, *, silent_until_ms: int) -> None:
        self.recovered = False
        self._me = me
        self._silent_until_ms = silent_until_ms
        self._version: tuple[bytes, int] | None = None
        self._synced: tuple[bytes, int] | None = None
        self._tellers: dict[str, _Teller] = {}

    def synced(self, roster: Roster, *, founder: bool) -> bool:
        """Return whether this voter has what was stored under rosters before this one."""
        if self._synced == (roster.id, roster.version) or roster.names == (self._me.name,):
            return True
        return founder and roster.version == 1

    def asks(self, roster: Roster, *, founder: bool, now_ms: int) -> list[tuple[str, RecordsAsk]]:
        """Return whom to ask, and for what, as far as it is time to."""
        if now_ms < self._silent_until_ms or self._me.name not in roster.names:
            return []
        self.recovered = self.recovered or founder
        if self.recovered and self.synced(roster, founder=founder):
            return []
        self._at(roster)
        asks = []
        for name, teller in self._tellers.items():
            if now_ms < teller.due_ms or teller.read_synced or (teller.read and self.recovered):
                continue
            teller.tries += 1
            patient = teller.tries > PATIENT_AFTER
            teller.due_ms = now_ms + (PATIENT_MS if patient else AGAIN_MS)
            me = self._me
            ask = RecordsAsk(me.name, me.boot, roster.id, roster.version, now_ms, *teller.after)
            asks.append((name, ask))
        return asks

    def told_to(
        self,
        ask: RecordsAsk,
        records: Records,
        terms: Sequence[tuple[int, int]],
        blind: Blind,
        *,
        synced: bool,
    ) -> RecordsTell:
        """Return the page that is asked for."""
        after = (ask.after_key, ask.after_window)
        first = not ask.after_key
        size = FIRST_PAGE_BYTES if first else PAGE_BYTES
        rows, more = records.page(after, bytes_max=size, rows_max=ROWS_MAX)
        return RecordsTell(
            self._me.name,
            self._me.boot,
            ask.boot,
            ask.roster,
            ask.roster_version,
            ask.asked_ms,
            *after,
            more,
            synced,
            *blind,
            tuple(rows),
            tuple(terms) if first else (),
        )

    def accepted(self, tell: RecordsTell, roster: Roster) -> Iterable[Minted]:
        """Return the rows of a page that was asked for; nothing of any other."""
        self._at(roster)
        teller = self._tellers.get(tell.voter)
        if teller is None or (tell.roster, tell.roster_version) != self._version:
            return ()
        if tell.asker_boot != self._me.boot:
            return ()
        if teller.tries == 0 or (tell.after_key, tell.after_window) != teller.after:
            return ()
        if teller.after != ("", 0) and tell.boot != teller.boot:
            self._tellers[tell.voter] = _Teller(read=teller.read)
            return ()
        first = teller.after == ("", 0)
        blind = Blind(tell.blind_short_ms, tell.blind_long_ms, tell.blind_short_for_ms)
        teller.boot = tell.boot
        teller.synced = tell.synced and (first or teller.synced)
        teller.blind = blind if first else _worst((teller.blind, blind))
        teller.tries = 1
        if tell.more and tell.rows:
            teller.after, teller.due_ms = (tell.rows[-1].key, tell.rows[-1].window), 0
        else:
            teller.after, teller.read = ("", 0), True
            teller.read_synced = teller.synced
        return tell.rows

    def gathered(self, roster: Roster) -> Gathered | None:
        """Return what this voter goes by from now on, if it has just got enough; else None."""
        needed = (len(roster.names) - 1) // 2 + 1
        told = [teller.blind for teller in self._tellers.values() if teller.read_synced]
        whole = not self.recovered and len(told) >= needed
        blinds = told if whole else []
        self.recovered = self.recovered or whole
        told = [teller.blind for teller in self._tellers.values() if teller.read]
        if self._synced != self._version and len(told) >= roster.majority - 1:
            self._synced = self._version
            return Gathered(whole, _worst([*blinds, *told]))
        return Gathered(whole, _worst(blinds)) if whole else None

    def _at(self, roster: Roster) -> None:
        """Begin anew for another version of the roster: what was read before it counts no more."""
        if self._version != (roster.id, roster.version):
            self._version = (roster.id, roster.version)
            self._tellers = {name: _Teller() for name in roster.names if name != self._me.name}


def _worst(blinds: Sequence[Blind]) -> Blind:
    return Blind(*map(max, zip(NOT_BLIND, *blinds, strict=True)))
