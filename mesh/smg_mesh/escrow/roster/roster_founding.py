"""Roster founding: nodes that see each other and have no roster begin one together.

The smallest name of all that are alive proposes an id, always the same one in its life, once there
are enough of them and none has told of a roster for a moment. All must accept, and none accepts two
at a time. Where one takes longer than its acceptors are patient, or they restart, two foundings
with names in common may come so far; only one of them is ever proven (see `roster_keeper`). Those
without a name in common may both be, on two sides of a cut; when they meet, the larger one counts.
"""

from collections.abc import Callable, Sequence
from typing import Final

from smg_mesh.escrow.limit_model import Roster
from smg_mesh.escrow.messages.messages import FoundAsk, FoundVote
from smg_mesh.escrow.roster import roster_values as rosters

LISTEN_MS: Final = 600
"""Whoever sees enough others listens for so long whether there is a roster."""
AGAIN_MS: Final = 150
PATIENCE_MS: Final = 2_000
"""After this the proposer gives up, and begins anew."""
ACCEPTED_MS: Final = 3_000
"""What was accepted holds a second longer than the proposer may count on it."""


class Founding:
    """Founding as one node sees it, while it has no roster."""

    def __init__(self, name: str, *, expect: int, new_id: Callable[[], bytes]) -> None:
        self._name = name
        self._expect = expect
        self._new_id = new_id
        self._enough_since_ms = -1
        self._id = b""
        self._names: Sequence[str] = ()
        self._accepted: list[str] = []
        self._began_ms = 0
        self._asked_ms = -1
        self._lock: tuple[bytes, int] | None = None

    def step(self, alive: Sequence[str], *, now_ms: int) -> list[tuple[str, FoundAsk]]:
        """Return whom to ask, if this node is the one to propose."""
        names = sorted({*alive, self._name})
        if len(names) < self._expect:
            self._enough_since_ms, self._names = -1, ()
            return []
        if self._enough_since_ms < 0:
            self._enough_since_ms = now_ms
        if names[0] != self._name or now_ms - self._enough_since_ms < self._listen_ms:
            self._names = ()
            return []
        if names != self._names or now_ms - self._began_ms > PATIENCE_MS:
            self._begin(names, now_ms)
        if not self._locked(self._id, now_ms) or 0 <= now_ms - self._asked_ms < AGAIN_MS:
            return []
        self._asked_ms = now_ms
        ask = FoundAsk(self._id, self._name, now_ms)
        return [(name, ask) for name in names if name not in self._accepted]

    def founded(self, *, now_ms: int) -> Roster | None:
        """Return the first roster, once all have accepted it in time."""
        if not self._names or now_ms - self._began_ms > PATIENCE_MS:
            return None
        if self._accepted != list(self._names):
            return None
        return rosters.first(self._id, self._names)

    def asked(self, ask: FoundAsk, *, now_ms: int) -> bool:
        """Return whether this node begins a roster with that one."""
        return self._locked(ask.roster, now_ms)

    def voted(self, vote: FoundVote) -> None:
        """Count a name that accepts."""
        if vote.roster != self._id or not vote.accepted or vote.voter not in self._names:
            return
        if vote.asked_ms < self._began_ms:
            return
        if vote.voter not in self._accepted:
            self._accepted = sorted([*self._accepted, vote.voter])

    def waits_for_another(self, roster_id: bytes, *, now_ms: int) -> bool:
        """Return whether this node has promised just now to begin a roster that neither it nor that id proposes."""
        lock = self._lock
        return lock is not None and now_ms < lock[1] and lock[0] not in (roster_id, self._id)

    def has_accepted(self, roster_id: bytes) -> bool:
        """Return whether that is the roster this node has begun with others, in this life."""
        return self._lock is not None and self._lock[0] == roster_id

    @property
    def _listen_ms(self) -> int:
        return LISTEN_MS if self._expect > 1 else 0

    def _begin(self, names: Sequence[str], now_ms: int) -> None:
        self._id = self._id or self._new_id()
        self._names = names
        self._accepted = [self._name]
        self._began_ms, self._asked_ms = now_ms, -1

    def _locked(self, roster_id: bytes, now_ms: int) -> bool:
        """Accept that one, unless another was accepted just before."""
        lock = self._lock
        if lock is not None and lock[0] != roster_id and now_ms < lock[1]:
            return False
        self._lock = roster_id, now_ms + ACCEPTED_MS
        return True
