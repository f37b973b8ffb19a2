"""Announcements of a node to its subscribers: checked, and kept in the event log."""

from typing import Protocol

from smg_chaos.simulate.base import event_log as chronicle
from smg_chaos.simulate.base.event_log import Happening
from smg_chaos.simulate.base.virtual_clock import MS
from smg_chaos.simulate.hosts.host import Node
from smg_chaos.simulate.hosts.node_parts import RightsLife, SharedLife
from smg_chaos.simulate.hosts.ports import HasAgenda, HasChronicle, PromiseReport
from smg_chaos.simulate.world.checkers import Checkers
from smg_mesh.swim.boot_numbers import STARTING_MS
from smg_mesh.swim.effects import (
    BootChanged,
    Effect,
    Isolated,
    Member,
    MemberChanged,
    MemberDown,
    MemberLeft,
    MemberRefuted,
    MemberSuspected,
    MemberUp,
    NewsReceived,
    Superseded,
)


class AnnouncingWorld(HasAgenda, HasChronicle, PromiseReport, Protocol):
    """The world whose nodes announce what they see."""

    checkers: Checkers

    def alone(self, node: Node) -> bool:
        """Return whether a node knows no other living member."""
        ...

    def step_down(self, node: Node) -> None:
        """End a life that heard of a newer one with its name, after it has drained."""
        ...


def announce(world: AnnouncingWorld, node: Node, effect: Effect) -> None:
    """Write an announcement of `node` down, and do what its driver would do on it."""
    if node.life is not None and isinstance(effect, NewsReceived):
        node.life.hear(effect.news)
        return
    match effect:
        case MemberUp(member, returned):
            world.checkers.announced_up(node, member)
            node.host.disk.remember(member.name, member.address)
            _say(world, node, chronicle.UP, member, "returned" if returned else "")
        case MemberDown(member, why):
            world.checkers.announced_gone(node, member)
            _say(world, node, chronicle.DOWN, member, why)
            _lost(world, node)
        case MemberLeft(member):
            world.checkers.announced_gone(node, member)
            _say(world, node, chronicle.LEFT, member)
            _lost(world, node)
        case MemberChanged(member, restarted):
            node.host.disk.remember(member.name, member.address)
            _say(world, node, chronicle.CHANGED, member, "restarted" if restarted else "")
        case MemberSuspected(member, why):
            _say(world, node, chronicle.SUSPECT, member, why)
        case MemberRefuted(member):
            _say(world, node, chronicle.REFUTED, member)
        case _:
            _own(world, node, effect)
    if node.life is not None:
        _share(node.life, effect)
    if node.teller is not None:
        _limit(node.teller, effect)


def _share(life: SharedLife, effect: Effect) -> None:
    """Let the replica know what concerns it."""
    match effect:
        case MemberUp() | MemberDown() | MemberLeft() | MemberChanged():
            life.members_changed()
        case BootChanged(boot):
            life.rebooted(boot)
        case _:
            pass


def _limit(teller: RightsLife, effect: Effect) -> None:
    """Let the rights of the node know what concerns them."""
    match effect:
        case MemberUp() | MemberDown() | MemberLeft() | MemberChanged():
            teller.members_changed()
        case BootChanged(boot):
            teller.rebooted(boot)
        case _:
            pass


def _own(world: AnnouncingWorld, node: Node, effect: Effect) -> None:
    """Take what a core says of itself, and news."""
    now_us, label = world.agenda.now_us, node.host.label
    match effect:
        case NewsReceived(news):
            detail = f"{news.kind}/{news.key} {news.seq}"
            happening = Happening(now_us, label, chronicle.NEWS, news.origin, 0, 0, detail)
        case BootChanged(boot):
            node.host.disk.boot = max(boot, node.host.disk.boot)
            world.checkers.rebooted(node, boot)
            happening = Happening(now_us, label, chronicle.BOOT, node.name, boot)
        case Superseded(boot, address):
            if now_us - node.started_us < STARTING_MS * MS:
                node.host.disk.boot = node.host.disk.boot_before
            world.step_down(node)
            happening = Happening(
                now_us, label, chronicle.SUPERSEDED, node.name, boot, 0, str(address)
            )
        case Isolated(on):
            detail = "yes" if on else "no"
            happening = Happening(now_us, label, chronicle.ISOLATED, node.name, 0, 0, detail)
        case _:
            world.broken(f"{label} asked for {effect!r}, which no driver knows")
            return
    world.chronicle.add(happening)


def _say(world: AnnouncingWorld, node: Node, kind: str, member: Member, detail: str = "") -> None:
    world.chronicle.add(
        Happening(
            world.agenda.now_us,
            node.host.label,
            kind,
            member.name,
            member.boot,
            member.incarnation,
            detail,
        )
    )


def _lost(world: AnnouncingWorld, node: Node) -> None:
    if node.search is not None and not node.leaving and world.alone(node):
        node.search.lost_all()
