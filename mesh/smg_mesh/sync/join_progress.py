"""Join progress: whether this node holds the cluster's state yet, or is still joining.

It holds it

    at once        where there is no peer to ask
    after a while  (the join grace) where expected peers are missing: no member lives to be asked.
                   What this node has is all there is, and a cluster that comes later is merged with as any
    by one         after a full exchange with a peer that holds it
    by all         after full exchanges with every living member (with eight, of many) if all of them are
                   arriving as well: a cluster that starts from its disks, or for the first time. What they
                   have together is all there is. Others may be on their way, so this counts only
                   a second after the last one appeared; a member not met by then is asked for one

Once it does, it does: what is missed later is found by digests.
"""

from collections.abc import Callable, Sequence
from typing import Final

SETTLE_MS: Final = 1_000
"""A node that is there at all is heard of by everybody within half a second."""
EQUALS_ENOUGH: Final = 8
"""Eight random members of a cluster that all arrive: then it has just been started as a whole."""
ASK_APART_MAX_MS: Final = 30_000


class Arrival:
    """Arrival of one life. The wiring sets `nobody`, which tells whether there is no peer to ask."""

    def __init__(self, me: str, *, grace_ms: int, now_ms: Callable[[], int]) -> None:
        self.nobody: Callable[[], bool] = _somebody
        self._me: Final = me
        self._now_ms: Final = now_ms
        self._held = False
        self._grace_ms: Final = now_ms() + grace_ms
        self._living: tuple[str, ...] = ()
        self._equals: dict[str, None] = {}
        """Met in full, and arriving like this node."""
        self._settled_ms = now_ms()
        """When nobody new has appeared for a second."""
        self._ask_ms = self._settled_ms
        self._apart_ms = SETTLE_MS
        self._asked = 0

    @property
    def held(self) -> bool:
        """Whether this node holds the cluster's state."""
        if not self._held:
            self._held = self._all_are_equal() or self.nobody() or self._nobody_came()
        return self._held

    def set_members(self, living: Sequence[str]) -> None:
        """Learn which members live, this node among them."""
        others = tuple(sorted(name for name in living if name != self._me))
        if any(name not in self._living for name in others):
            self._settled_ms = self._ask_ms = self._now_ms() + SETTLE_MS
            self._apart_ms = SETTLE_MS
        self._living = others

    def met(self, peer: str, *, full: bool, held: bool) -> None:
        """Learn that an exchange came to its end; `held`: the peer said that it holds the state."""
        if full and held:
            self._held = True
        elif full:
            self._equals[peer] = None

    def due_ms(self) -> int | None:
        """Return when to call `ask`; None: not before something happens."""
        if self._held:
            return None
        return self._ask_ms if self._living else self._grace_ms

    def ask(self) -> str:
        """Return the member to have an exchange with now, empty if there is none; another one each time."""
        now_ms = self._now_ms()
        if self.held or now_ms < self._ask_ms:
            return ""
        self._ask_ms = now_ms + self._apart_ms
        self._apart_ms = min(2 * self._apart_ms, ASK_APART_MAX_MS)
        unmet = [name for name in self._living if name not in self._equals]
        if not unmet:
            return ""
        self._asked += 1
        return unmet[self._asked % len(unmet)]

    def _nobody_came(self) -> bool:
        return not self._living and self._now_ms() >= self._grace_ms

    def _all_are_equal(self) -> bool:
        met = sum(name in self._equals for name in self._living)
        enough = met > 0 and met >= min(len(self._living), EQUALS_ENOUGH)
        return enough and self._now_ms() >= self._settled_ms


def _somebody() -> bool:
    return False
