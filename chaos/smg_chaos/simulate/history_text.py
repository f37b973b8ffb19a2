"""History text: the log of a world as lines for readers, and how it ended.

What many nodes say within two seconds about one member is one line: who said it first, when, and by when
how many had said it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from smg_chaos.simulate.base import event_log as chronicle
from smg_chaos.simulate.base.event_log import Happening
from smg_chaos.simulate.base.virtual_clock import SECOND
from smg_chaos.simulate.world.world import World

_TOGETHER_US: Final = 2 * SECOND

_WORDS: Final = {
    chronicle.UP: "is up",
    chronicle.SUSPECT: "is doubted",
    chronicle.REFUTED: "answered the doubt",
    chronicle.DOWN: "is dead",
    chronicle.LEFT: "left",
    chronicle.CHANGED: "changed",
    chronicle.NEWS: "said something",
}
_OWN_WORDS: Final = {
    chronicle.SUPERSEDED: "hears of a process that keeps its name",
    chronicle.ISOLATED: "believes that it is cut off:",
    chronicle.BOOT: "takes a larger boot",
}


@dataclass(slots=True)
class _Line:
    """Happenings that are told together."""

    first: Happening
    last_us: int
    observers: list[str] = field(default_factory=list)


def story(world: World) -> Iterator[str]:
    """Yield the lines of a world's history."""
    for line in _together(world.chronicle.happenings):
        yield f"{line.first.at_us / SECOND:9.3f}  {_told(line)}"


def _together(happenings: Sequence[Happening]) -> list[_Line]:
    lines: list[_Line] = []
    open_lines: dict[tuple[object, ...], _Line] = {}
    for one in happenings:
        if one.kind not in _WORDS:
            lines.append(_Line(one, one.at_us))
            continue
        key = (one.kind, one.name, one.boot, one.incarnation, one.kind == chronicle.NEWS and one)
        line = open_lines.get(key)
        if line is None or one.at_us - line.last_us > _TOGETHER_US:
            line = open_lines[key] = _Line(one, one.at_us)
            lines.append(line)
        line.last_us = one.at_us
        line.observers.append(one.observer)
    return lines


def _told(line: _Line) -> str:
    one = line.first
    if one.kind == chronicle.WORLD:
        return f"* {one.name} {one.detail}"
    if one.kind in _OWN_WORDS:
        return f"  {one.observer} {_OWN_WORDS[one.kind]} {one.detail}".rstrip()
    detail = f" ({one.detail})" if one.detail else ""
    life = f"#{one.incarnation}"
    told = f"  {one.name}{life} {_WORDS[one.kind]}{detail} for {line.observers[0]}"
    more = len(set(line.observers)) - 1
    if not more:
        return told
    took_s = (line.last_us - one.at_us) / SECOND
    return f"{told}, within {took_s:.3f} s for {more} more"


def ending(world: World) -> Iterator[str]:
    """Yield how it ended: every member's life, and what was broken."""
    for label, host in world.hosts.items():
        node = host.node
        lives = f"{host.lives} {'life' if host.lives == 1 else 'lives'}"
        if node is None:
            yield f"{label}: {lives}, not running"
        else:
            row = (
                f"incarnation {node.core.incarnation}, knows {len(node.core.members()) - 1} others"
            )
            yield f"{label}: {lives}, runs at {host.address}, {row}"
    for promise in world.broken_promises:
        yield f"BROKEN {promise}"
