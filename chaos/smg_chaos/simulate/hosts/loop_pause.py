"""Loop pause: a node's event loop stands still for a while, and goes on by itself."""

from functools import partial
from typing import Protocol

from smg_chaos.simulate.base.virtual_clock import MS
from smg_chaos.simulate.hosts.host import Node
from smg_chaos.simulate.hosts.ports import HasAgenda, LoopControl


class PausedWorld(HasAgenda, LoopControl, Protocol):
    """The world of a node whose loop stands still."""


def stand_still(world: PausedWorld, node: Node, *, for_ms: int, timers_first: bool) -> None:
    """Stop a node's loop and plan that it goes on."""
    if node.teller is not None:
        node.teller.end()  # What its books say until here: on waking it forgets one half before the other.
    world.stop(node)
    deed = partial(world.go_on, node, timers_first=timers_first)
    world.agenda.deed(world.agenda.now_us + for_ms * MS, deed)
