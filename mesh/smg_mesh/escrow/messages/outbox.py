"""Outbox: turns messages into packets, and holds votes back until the disk has what they say.

What is for one member goes together, in the order in which it was said; a packet is sent when the input that
caused it is over.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from smg_mesh.escrow.founding_state import FoundingState
from smg_mesh.escrow.limit_model import Roster
from smg_mesh.escrow.messages.effects import Effect, KeepFounding, KeepRoster, Note, Persist, Send
from smg_mesh.escrow.messages.messages import LeaseVote, Message, Minted
from smg_mesh.escrow.messages.packetizer import packets

KEPT_AGAIN_MS: Final = 200
"""A roster, or what was promised before there is one, is written anew after this: all else waits for it."""
WAITING_MAX: Final = 1_000
"""Votes of up to 50 rows each; more are not given."""
WAITING_MS: Final = 5_000
"""What the disk has not by then, it never has: nobody waits for that vote any more."""


@dataclass(frozen=True, slots=True)
class Wait:
    """One thing that waits for the disk: a vote with the rows that it is about, a roster, or what a founding needs."""

    since_ms: int
    to: str = ""
    vote: LeaseVote | None = None
    rows: tuple[Minted, ...] = ()
    roster: Roster | None = None
    founding: FoundingState | None = None


class Outbox:
    """Outbox of one node."""

    def __init__(self, me: str) -> None:
        self._me = me
        self._letters: dict[str, list[Message]] = {}
        self._effects: list[Effect] = []
        self._waits: dict[int, Wait] = {}
        self._last_token = 0

    def send(self, to: str, message: Message) -> None:
        """Send a message to another member."""
        assert to != self._me
        self._letters.setdefault(to, []).append(message)

    def note(self, name: str, detail: str) -> None:
        """Count something."""
        self._effects.append(Note(name, detail=detail))

    def tell(self, effects: Iterable[Effect]) -> None:
        """Have these done too."""
        self._effects += effects

    def wait_for_rows(self, to: str, vote: LeaseVote, rows: Sequence[Minted], now_ms: int) -> None:
        """Have rows written; `written` gives the vote back."""
        if len(self._waits) >= WAITING_MAX:
            self.note("rights_refused", "disk")
            return
        wait = Wait(now_ms, to, vote, tuple(rows))
        self._effects.append(Persist(self._take(wait), wait.rows))

    def write_down(self, rows: Sequence[Minted], now_ms: int) -> None:
        """Have rows written that nothing waits for."""
        if rows:
            wait = Wait(now_ms, rows=tuple(rows))
            self._effects.append(Persist(self._take(wait), wait.rows))

    def keep_roster(self, roster: Roster, now_ms: int) -> None:
        """Have a roster written, unless that is under way; anew if it takes long."""
        if self._is_due([one for one in self._waits.values() if one.roster == roster], now_ms):
            self._effects.append(KeepRoster(self._take(Wait(now_ms, roster=roster)), roster))

    def keep_founding(self, state: FoundingState, now_ms: int) -> None:
        """Have written what was promised, unless that is under way; anew if it takes long."""
        if self._is_due([one for one in self._waits.values() if one.founding == state], now_ms):
            wait = Wait(now_ms, founding=state)
            self._effects.append(KeepFounding(self._take(wait), state))

    def written(self, token: int) -> Wait | None:
        """Return what waited for that; None if nothing waits any more."""
        return self._waits.pop(token, None)

    def tidy(self, now_ms: int) -> None:
        """Forget what waited for too long."""
        self._waits = {
            token: wait
            for token, wait in self._waits.items()
            if now_ms - wait.since_ms < WAITING_MS
        }

    def clear(self) -> list[Effect]:
        """Return all that is to be done since the last time, in order, packets last."""
        effects, self._effects = self._effects, []
        letters, self._letters = self._letters, {}
        known: dict[int, Sequence[bytes]] = {}
        for to, messages in letters.items():
            effects += [Send(to, packet) for packet in packets(messages, known)]
        return effects

    def _is_due(self, same: Sequence[Wait], now_ms: int) -> bool:
        return all(now_ms - wait.since_ms >= KEPT_AGAIN_MS for wait in same)

    def _take(self, wait: Wait) -> int:
        self._last_token += 1
        self._waits[self._last_token] = wait
        return self._last_token
