"""Founding state: what a name has promised and accepted while a first roster is founded, as it stands on its disk.

The protocol is in `roster/roster_founding`. Values only.
"""

from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

FOUNDERS_MAX: Final = 40
"""Sets of names that may be tried before one is a roster; their ids fit into one packet. A set is tried again as often as it
is wanted, and a proposer wants another one only after its own has failed for two seconds, or a name of it died. Beyond that
none is tried that was not before.
"""


class Ballot(NamedTuple):
    """Ballot of one proposer: the larger counter wins, then the larger name, then the larger life. No two lives have one."""

    counter: Annotated[int, Meta(ge=0)]
    name: Annotated[str, Meta(max_length=63)]
    boot: Annotated[int, Meta(ge=0)]


NO_BALLOT: Final = Ballot(0, "", 0)
"""Smaller than any: also of what a release before ballots says, and of what its disks have."""


class Founders(msgspec.Struct, frozen=True):
    """The names that a first roster is proposed to, sorted, in the lives that they had then. `id` becomes the roster's."""

    id: bytes
    names: tuple[str, ...]
    boots: tuple[int, ...]
    """0 where it is not known."""

    @property
    def majority(self) -> int:
        """How many of them are more than half."""
        return len(self.names) // 2 + 1

    def has_life(self, name: str, boot: int) -> bool:
        """Return whether that life of a name is one of them."""
        return any(one == (name, boot) for one in zip(self.names, self.boots, strict=True))


class FoundingState(msgspec.Struct, frozen=True):
    """Acceptor's state of one name. It only grows: the ballot, the sets of founders, and what was accepted last."""

    ballot: Ballot = NO_BALLOT
    """The largest that was promised: nothing is promised or accepted under a smaller one."""
    founders: tuple[Founders, ...] = ()
    """All that this name ever made a promise about, sorted by id."""
    forgotten: tuple[bytes, ...] = ()
    """Ids of those that are about a life before which left nothing here: what that promised and accepted is lost."""
    accepted: bytes = b""
    """The id of the founders whose roster was accepted last; empty for none."""
    accepted_ballot: Ballot = NO_BALLOT

    def is_later(self, other: "FoundingState") -> bool:
        """Return whether this is a state after that one."""
        mine = (self.ballot, len(self.founders), self.accepted != b"", self.accepted_ballot)
        return mine > (
            other.ballot,
            len(other.founders),
            other.accepted != b"",
            other.accepted_ballot,
        )
