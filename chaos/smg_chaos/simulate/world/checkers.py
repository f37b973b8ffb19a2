"""Checkers of membership: invariants at every step, and agreement of all nodes in the end.

Safety is looked at incrementally. After an input the world compares the node's digest, which covers the
boot and incarnation of every living row; when it changed, and every 64th time anyway, the node's whole
table is compared with what it was when it was looked at last (a table of hundreds of rows every so many
inputs only, or looking would cost more than living):

- one row per name, so at most one life of a name is a member anywhere;
- the order of a row (boot, incarnation, rank) never goes back, unless it was gone and was forgotten;
- no two lives of a name have one boot;
- no row tells of a life that never was, or of an incarnation that its life never had;
- no more rows of the gone than the cap allows; bytes that are no packet change nothing;
- announcements alternate: no member comes up twice, and none goes that was not there.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, TypeAlias

from smg_chaos.simulate.hosts.host import Node
from smg_chaos.simulate.hosts.ports import HasNodes, PromiseReport
from smg_mesh.swim.effects import Effect, Member, Note
from smg_mesh.swim.messages import Rank

_Order: TypeAlias = tuple[int, int, int]
_FORGOTTEN: Final = (-1, -1, -1)
SUBJECTS_MAX: Final = 12
"""How many differences a report lists."""


class Checkers:
    """All invariants of one world."""

    def __init__(self, world: PromiseReport) -> None:
        self._world = world
        self._lives: dict[tuple[str, int], Node] = {}
        self._ended: dict[tuple[str, int], int] = {}
        self.looks = 0

    # ── Lives ────────────────────────────────────────────────────────────────

    def born(self, node: Node) -> None:
        """Take note of a new life."""
        self._is_new(node.name, node.boot)
        self._lives[node.name, node.boot] = node

    def rebooted(self, node: Node, boot: int) -> None:
        """Take note that a life goes on under a larger boot."""
        if boot <= node.boot:
            self._world.broken(f"{node.host.label} went from boot {node.boot} back to {boot}")
        self._ended[node.name, node.boot] = self._reached(node.name, node.boot)
        self._is_new(node.name, boot)
        node.boot = boot
        self._lives[node.name, boot] = node

    def _is_new(self, name: str, boot: int) -> None:
        if (name, boot) in self._lives:
            self._world.broken(f"two lives of {name} have one boot: {boot}")

    def ended(self, node: Node) -> None:
        """Take note that a life is over."""
        self._ended[node.name, node.boot] = node.core.incarnation

    def _reached(self, name: str, boot: int) -> int:
        """Return the highest incarnation that life had, or -1 if there never was one."""
        ended = self._ended.get((name, boot))
        if ended is not None:
            return ended
        node = self._lives.get((name, boot))
        if node is None:
            return -1
        if node.core.boot != boot:
            # It took a larger boot just now, and says so with the effects of this very input.
            own = node.checked.get(name)
            return (own[1] if own else 0) + 1
        return node.core.incarnation

    # ── Tables ───────────────────────────────────────────────────────────────

    def look(self, node: Node) -> None:
        """Compare the node's table with what it was."""
        self.looks += 1
        rows = node.core.members()
        self._caps(node, rows)
        before = node.checked
        now: dict[str, _Order] = {}
        for row in rows:
            order: _Order = (row.boot, row.incarnation, row.rank)
            if row.name in now:
                self._world.broken(f"{node.host.label} has two rows for {row.name}")
            now[row.name] = order
            if before.get(row.name) != order:
                self._changed(node, row, order)
        for name, order in before.items():
            if order > now.get(name, _FORGOTTEN):
                self._went_back(node, name, order, now.get(name))
        node.checked = now

    def _changed(
        self,
        node: Node,
        row: Member,
        order: _Order,
    ) -> None:
        label = node.host.label
        reached = self._reached(row.name, row.boot)
        if reached < 0:
            self._world.broken(f"{label} knows a life of {row.name} that never was: {order}")
        elif row.incarnation > reached:
            why = f"it only reached {reached}"
            self._world.broken(f"{label} holds {row.name} at {order}, but {why}")

    def _went_back(self, node: Node, name: str, order: _Order, now: _Order | None) -> None:
        """A row is smaller than it was, or gone: right only if it was gone and was forgotten."""
        label = node.host.label
        if now is not None:
            self._world.broken(f"{label}'s row of {name} went back from {order} to {now}")
        elif order[2] < Rank.DEAD:
            self._world.broken(f"{label} forgot {name}, which was not gone")

    def _caps(self, node: Node, rows: Sequence[Member]) -> None:
        gone = sum(1 for row in rows if row.rank >= Rank.DEAD)
        if gone > node.options.rows_max:
            self._world.broken(f"{node.host.label} keeps {gone} rows of the gone")

    # ── Inputs ───────────────────────────────────────────────────────────────

    def refused(self, node: Node, before: Sequence[Member], effects: Sequence[Effect]) -> None:
        """A core was given bytes that are no packet; its table was `before`. It may only count them."""
        if any(type(effect) is not Note for effect in effects):
            self._world.broken(f"{node.host.label} acted on garbage: {effects!r:.300}")
        if before != node.core.members():
            self._world.broken(f"{node.host.label} let garbage change its table")

    # ── Announcements ────────────────────────────────────────────────────────

    def announced_up(self, node: Node, member: Member) -> None:
        """A node announced a member."""
        if member.name in node.counts_on:
            self._world.broken(f"{node.host.label} announced {member.name} up twice")
        node.counts_on[member.name] = None

    def announced_gone(self, node: Node, member: Member) -> None:
        """A node announced that a member is gone."""
        if member.name not in node.counts_on:
            self._world.broken(f"{node.host.label} announced {member.name} gone, who was not up")
        node.counts_on.pop(member.name, None)


def agreed(world: HasNodes) -> bool:
    """Return whether all living nodes have one digest: quick, for looking often."""
    nodes = world.nodes()
    return all(one.core.digest() == other.core.digest() for one, other in pairwise(nodes))


def disagreements(world: HasNodes, *, announced: bool = True) -> list[str]:
    """Return what is not as it must be once all is healed and quiet; empty: all is well.

    `announced`: also whether subscribers know; they hear late of a member that came back.
    """
    nodes = [node for node in world.nodes() if not node.leaving]
    truth: dict[str, Node] = {}
    wrong: list[str] = []
    for node in nodes:
        if node.name in truth:
            wrong.append(f"two processes live under the name {node.name}")
        truth[node.name] = node
    for node in nodes:
        wrong += _table_differs(node, truth)
        if announced:
            wrong += _announced_differs(node, list(truth))
    if not wrong and not agreed(world):
        wrong.append("all tables are equal, and digests are not")
    return wrong[:SUBJECTS_MAX]


def _table_differs(node: Node, truth: dict[str, Node]) -> list[str]:
    wrong: list[str] = []
    label = node.host.label
    seen = {row.name: row for row in node.core.members()}
    for name, other in truth.items():
        row = seen.pop(name, None)
        own = other.core.members()[0]
        is_so = (other.core.boot, other.core.incarnation, Rank.ALIVE)
        if row is None:
            wrong.append(f"{label} does not know {name}, who is alive")
        elif (row.boot, row.incarnation, row.rank) != is_so:
            held = (row.boot, row.incarnation, row.rank)
            wrong.append(f"{label} holds {name} at {held}, who is at {is_so}")
        elif (row.address, row.meta) != (other.address, own.meta):
            told = f"{row.address} {row.meta!r}"
            wrong.append(f"{label} has {told} for {name}, who is {other.address} {own.meta!r}")
    for name, row in seen.items():
        if not row.rank.gone:
            wrong.append(f"{label} holds {name} as {row.rank.name}, who is no more")
    if node.core.isolated:
        wrong.append(f"{label} believes that it is cut off")
    return wrong


def _announced_differs(node: Node, living: Sequence[str]) -> list[str]:
    label = node.host.label
    others = [name for name in living if name != node.name]
    wrong = [f"{label} has not announced {one}" for one in others if one not in node.counts_on]
    gone = [name for name in node.counts_on if name not in others]
    return wrong + [f"{label} has not announced that {name} is gone" for name in gone]
