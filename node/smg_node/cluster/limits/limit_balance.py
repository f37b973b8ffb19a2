"""Limit balance: what of one limit can still be got in its window, what cannot, and why. Pure.

    spent + remaining + unavailable  =  the amount, or what was spent if that is more

What remains is what any node that is heard can still get from the owner or has itself: nodes give
up what they do not need. Unavailable is only what there is a reason for, a *claim*, at most as much
as the books say is missing: what an owner has, and what nodes have in hand or will have, is never
claimed. What is on its way between two of them remains. Nodes are asked one after the other while
they go on spending, so single units may be told in the wrong place for a moment; the sum is right.

    dead        stands with a node that no living node hears, or was given to it
    silent      the same of a node that lives and does not answer
    restarted   stood with a node that began to live in this window, or was given to its life before
    owner_lost  was minted by an owner before this one, and is with no node that answers
    withheld    is kept back as long as some may go by older limits or another roster
    no_owner    nobody can mint it, since no majority of the nodes is heard
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from smg_mesh.shared import Report
from smg_node.http.ports.limits import Unavailable, UnavailableReason

_ALL: Final = 1 << 62
_TEXTS: Final[Mapping[UnavailableReason, str]] = {
    "dead": "with node {node}, which is dead or cut off, spent there or not",
    "silent": "with node {node}, which does not answer, spent there or not",
    "restarted": "lost until the window ends by the restart of node {node}, unless spent before it",
    "owner_lost": "lost until the window ends with a node that owned the limit before",
    "withheld": "kept back until all nodes are known to go by the present limit and members",
    "no_owner": "not to be had without an owner; only {heard} of {names} nodes are heard here, no majority",
}
_NO_ROSTER: Final = "not to be had without an owner; the nodes have not yet agreed on who votes"


class Claim(NamedTuple):
    """Reason why some of a limit cannot be had, and of how much at most."""

    reason: UnavailableReason
    node: str
    most: int


@dataclass(frozen=True, slots=True)
class Balance:
    """What is left of a limit, and what became of the rest."""

    remaining: int
    over: int
    """Spent beyond the amount: borrowed, or by answers that became longer than was reserved."""
    unavailable: Sequence[Unavailable]


@dataclass(frozen=True, slots=True)
class Sight:
    """What is known of one limit: reports of its window by node, and who was asked at all."""

    amount: int
    windowless: bool
    counted: Mapping[str, Report]
    owner: Report | None
    """The report of the owner, if there is one; among `counted`."""
    answered: Collection[str]
    """The nodes that answered, whether they have a report of this limit or not."""
    living: Collection[str]

    @property
    def roster(self) -> Sequence[str]:
        """The names of the newest roster that is reported."""
        newest = max(self.counted.values(), key=lambda report: report.roster_version)
        return newest.roster

    @property
    def has_majority(self) -> bool:
        """Whether those that answered can elect an owner."""
        names = self.roster
        return 2 * sum(name in self.answered for name in names) > len(names)


def balance_of(sight: Sight) -> Balance:
    """Return what is left of it; nothing in it is negative, and all of it adds up."""
    spent = sum(max(0, report.spent) for report in sight.counted.values())
    rest = max(0, sight.amount - spent)
    gap = max(0, rest - _obtainable(sight, rest))
    found = []
    for reason, node, most in _claims(sight):
        taken = min(gap, most)
        if taken > 0:
            gap -= taken
            rest -= taken
            found.append(Unavailable(taken, reason, node, _text(sight, reason, node)))
    return Balance(rest, max(0, spent - sight.amount), found)


def _obtainable(sight: Sight, rest: int) -> int:
    """Return what is surely there for nodes that are heard: no claim takes any of it."""
    owner, counted = sight.owner, sight.counted
    hands = sum(max(0, one.left) + max(0, one.coming) for one in counted.values())
    if sight.windowless:
        return hands
    if owner is not None:
        return hands + max(0, owner.pool) + _unused(sight)
    if any(one.state == "alone" for one in counted.values()):
        return rest
    return 0 if sight.has_majority else hands


def _unused(sight: Sight) -> int:
    """Return what stands with nodes that answered and have not used it in this window."""
    owner = sight.owner
    assert owner is not None
    quiet = [name for name in owner.roster if name in sight.answered and name not in sight.counted]
    return sum(max(0, owner.right) for name in quiet if name not in owner.newcomers)


def _claims(sight: Sight) -> Iterator[Claim]:
    """Yield every reason why something may be missing, the surest first."""
    owner, roster = sight.owner, sight.roster
    given = {} if owner is None else dict(owner.given)
    stranded = {} if owner is None else dict(owner.stranded)
    for place, name in enumerate(roster):
        if name not in sight.answered:
            reason: UnavailableReason = "silent" if name in sight.living else "dead"
            yield Claim(reason, name, _part(sight, place, name) + max(0, given.get(name, 0)))
    for name, report in sorted(sight.counted.items()):
        yield Claim("restarted", name, max(0, report.missing) + max(0, stranded.get(name, 0)))
    if owner is not None:
        yield Claim("owner_lost", "", _lost(sight, owner))
    yield Claim("withheld", "", sum(max(0, one.withheld) for one in sight.counted.values()))
    if owner is None and not sight.windowless and not sight.has_majority:
        yield Claim("no_owner", "", _ALL)


def _part(sight: Sight, place: int, name: str) -> int:
    """Return what stands with a name of the roster."""
    if sight.windowless:
        names = len(sight.roster)
        return max(0, (sight.amount - place + names - 1) // names)
    reports = sight.counted.values()
    newest = sight.owner or max(reports, key=lambda report: report.roster_version)
    return 0 if name in newest.newcomers else max(0, newest.right)


def _lost(sight: Sight, owner: Report) -> int:
    """Return what owners before this one minted, less what nodes that answer have of it."""
    if owner.made < 0:
        return 0
    had = sum(
        amount
        for report in sight.counted.values()
        for term, amount in report.received
        if term != owner.term
    )
    return max(0, owner.minted - owner.made - max(0, had))


def _text(sight: Sight, reason: UnavailableReason, node: str) -> str:
    if reason == "no_owner" and not sight.roster:
        return _NO_ROSTER
    heard = sum(name in sight.answered for name in sight.roster)
    return _TEXTS[reason].format(node=node, heard=heard, names=len(sight.roster))
