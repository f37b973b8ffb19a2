"""Roster values: a first roster, one step at a time, the better one of
two, and wire pieces. Values only.

    join   one more name. Names that know divide by one more; the newcomer has nothing yet
    grow   every name goes by the roster before: now the newcomers have their part too
    leave  one name less; the others divide by one less

For every history of these the parts that any name may still use add up to no more than one, because
a name with a divisor of its own never divides by less than there are such names.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, Literal, TypeAlias

from smg_mesh.escrow.founding_state import NO_BALLOT, Ballot, Founders
from smg_mesh.escrow.limit_model import Roster
from smg_mesh.escrow.messages.messages import RosterTell

Kind: TypeAlias = Literal["", "join", "leave", "grow"]

PART_NAMES: Final = 12
"""Names in one message: 12 of 63 characters fit into a packet."""


def first(roster_id: bytes, names: Iterable[str]) -> Roster:
    """Return the first roster of these names; all of them have their part of what stands."""
    together = tuple(sorted(names))
    count = len(together)
    return Roster(roster_id, 1, together, (count,) * count, proven=count == 1)


def changed(roster: Roster, kind: Kind, member: str, *, since_ms: int) -> Roster | None:
    """Return the version that follows, or None if the change makes no sense for this one."""
    have = dict(zip(roster.names, roster.divisors, strict=True))
    if kind == "join" and member and member not in have:
        have[member] = 0
    elif kind == "leave" and member in have and len(have) > 1:
        del have[member]
        have = {name: min(divisor, len(have)) for name, divisor in have.items()}
    elif kind == "grow":
        have = dict.fromkeys(have, len(have))
    else:
        return None
    names = tuple(sorted(have))
    divisors = tuple(have[name] for name in names)
    # A window that one of these steps fell into is remembered as long as it may still run.
    since_ms = max(since_ms, roster.since_ms)
    return Roster(roster.id, roster.version + 1, names, divisors, since_ms, proven=True)


def is_better(one: Roster, other: Roster | None) -> bool:
    """Return whether the first one counts where both are known: the later of one kind, the proven or larger of two."""
    if other is None:
        return True
    if one.id == other.id:
        return (one.version, one.proven) > (other.version, other.proven)
    if one.proven is not other.proven:
        return one.proven
    return counts_more(len(one.names), one.id, len(other.names), other.id)


def counts_more(count: int, roster_id: bytes, other_count: int, other_id: bytes) -> bool:
    """Return whether a roster of so many names and that id counts more than another one."""
    return (-count, roster_id) < (-other_count, other_id)


def parts(roster: Roster, *, wall_ms: int = 0, ballot: Ballot = NO_BALLOT) -> list[RosterTell]:
    """Return the messages that tell a roster at that time of the wall clock; to be accepted under `ballot`."""
    return [
        RosterTell(
            roster.id,
            roster.version,
            roster.since_ms,
            roster.proven,
            begin,
            len(roster.names),
            roster.names[begin : begin + PART_NAMES],
            roster.divisors[begin : begin + PART_NAMES],
            max(0, wall_ms),
            ballot,
        )
        for begin in range(0, len(roster.names), PART_NAMES)
    ]


def founders_parts(founders: Founders) -> list[RosterTell]:
    """Return the messages that tell founders: those of a roster of version 0. A release that knows none drops them."""
    return parts(Roster(founders.id, 0, founders.names, founders.boots))


class Assembly:
    """The parts of one roster (or of founders, as one of version 0) that have come in; those of another one begin anew."""

    def __init__(self) -> None:
        self._of: tuple[bytes, int, int, bool, int, Ballot] | None = None
        self._names: dict[int, tuple[str, int]] = {}

    def add(self, part: RosterTell) -> Roster | None:
        """Take a part; return the roster once all of it is there and makes sense."""
        of = (part.roster, part.version, part.since_ms, part.proven, part.count, part.ballot)
        if of != self._of:
            self._of, self._names = of, {}
        if part.first + len(part.names) > part.count or len(part.names) != len(part.divisors):
            return None
        for place, pair in enumerate(zip(part.names, part.divisors, strict=True), part.first):
            self._names[place] = pair
        if len(self._names) < part.count:
            return None
        pairs = [self._names[place] for place in range(part.count)]
        self._of, self._names = None, {}
        names = tuple(name for name, _ in pairs)
        if not _in_order(names):
            return None
        divisors = tuple(divisor for _, divisor in pairs)
        return Roster(part.roster, part.version, names, divisors, part.since_ms, part.proven)


def _in_order(names: Sequence[str]) -> bool:
    return all(one < two for one, two in pairwise(names))
