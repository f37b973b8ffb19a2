"""Owner directory of a node that does not vote: which node to ask for rights of a slot. Pure.

Such a node is not told to whom slots are promised. The name with the best claim owns most slots.
Where that one was out of sight for a while another one does, and keeps it as long as it renews its
lease; voters hear of that, a newcomer does not. So a newcomer whose first guess does not answer
asks the next name, in the order of their claims, and stays with the one that does.
"""

from collections.abc import Iterable, Sequence
from typing import Final

TURN_MS: Final = 100
"""So long one name is asked that has not answered; an ask is repeated after 25 and 50 ms. An answer that comes later counts."""
HEARD_FOR_MS: Final = 5_000
"""An owner that is wanted answers several times a second. After this it is only the first that is asked again."""


class OwnerDirectory:
    """Owners as one node knows them, of all slots of which it wants something."""

    def __init__(self) -> None:
        self._since_ms: dict[int, int] = {}
        """From when on names have been asked in turn."""
        self._heard: dict[int, tuple[str, int]] = {}

    def forget(self) -> None:
        """Begin anew: other names vote, or are in sight."""
        self._since_ms.clear()

    def heard(self, slots: Iterable[int], owner: str, *, now_ms: int) -> None:
        """Learn that a node gave out rights of these slots."""
        self._heard.update(dict.fromkeys(slots, (owner, now_ms)))

    def owner(self, slot: int, names: Sequence[str], *, now_ms: int) -> str:
        """Return whom to ask for rights of a slot; `names` may own it, the best claim first. Empty without any."""
        if not names:
            return ""
        owner, heard_ms = self._heard.get(slot, ("", 0))
        if owner in names and now_ms - heard_ms <= HEARD_FOR_MS:
            self._since_ms.pop(slot, None)
            return owner
        turns = (now_ms - self._since_ms.setdefault(slot, now_ms)) // TURN_MS
        first = names.index(owner) if owner in names else 0
        return names[(first + turns) % len(names)]
