"""Effect listener: handles the core's effects that are no I/O: journal,
memory, search, notifications.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from smg_mesh.io.counters import Counters
from smg_mesh.io.event_journal import Journal
from smg_mesh.io.peer_snapshot import Memory
from smg_mesh.io.shared_state.state_interface import Replicated
from smg_mesh.swim.boot_numbers import STARTING_MS
from smg_mesh.swim.effects import (
    BootChanged,
    Effect,
    Isolated,
    MemberChanged,
    MemberDown,
    MemberLeft,
    MemberRefuted,
    MemberSuspected,
    MemberUp,
    NewsReceived,
    Superseded,
)

_log: Final = logging.getLogger("smg_mesh")


class Listener:
    """Listener of one node; `lost_one` is called whenever a member died or
    left, `moved` on any such change.
    """

    def __init__(
        self,
        journal: Journal,
        memory: Memory,
        counters: Counters,
        *,
        me: str,
        now_ms: Callable[[], int],
        superseded: asyncio.Event,
        lost_one: Callable[[], None],
        moved: Callable[[], None] = lambda: None,
        shared: Replicated | None = None,
    ) -> None:
        self._journal = journal
        self._memory = memory
        self._counters = counters
        self._me = me
        self._now_ms = now_ms
        self._superseded = superseded
        self._lost_one = lost_one
        self._moved = moved
        self._shared = shared
        self._began_ms = now_ms()

    def hear(self, effect: Effect) -> None:
        """Take one effect, in the order in which the core said them."""
        match effect:
            case MemberUp() | MemberChanged():
                self._journal.member(effect, now_ms=self._now_ms())
                self._memory.changed()
                self._moved()
            case MemberSuspected() | MemberRefuted():
                self._journal.member(effect, now_ms=self._now_ms())
            case MemberDown() | MemberLeft():
                self._journal.member(effect, now_ms=self._now_ms())
                self._memory.changed()
                self._lost_one()
                self._moved()
            case BootChanged(boot=boot):
                _log.info("peers remember a later life of this node: its boot is %d now", boot)
                self._memory.boot_changed(boot)
                if self._shared is not None:
                    self._shared.change_boot(boot)
            case Superseded():
                self._step_down(effect)
            case Isolated(on=on):
                self._cut_off(on=on)
            case NewsReceived(news=news):
                self._counters.add("news_heard")
                if self._shared is not None:
                    self._shared.hear(news)
            case _:
                raise AssertionError(f"{effect} is the driver's")

    def _step_down(self, effect: Superseded) -> None:
        if self._now_ms() - self._began_ms < STARTING_MS:
            text = (
                f"the name {self._me!r} is taken: a node that lives at {effect.address} has it;"
                " give this one a name of its own (--name) and start it again"
            )
            self._memory.boot_refused()
        else:
            text = (
                f"another process at {effect.address} goes on under this node's name {self._me!r}:"
                " this one steps down; two machines need two names (--name)"
            )
        self._journal.add(
            "superseded",
            self._me,
            text,
            level=logging.ERROR,
            detail={"boot": effect.boot, "address": str(effect.address)},
        )
        self._superseded.set()
        if self._shared is not None:
            # The later life has what stands with this name.
            self._shared.rights.step_down()

    def _cut_off(self, *, on: bool) -> None:
        if on:
            text = "this node hears nobody: it is probably the one cut off, and accuses nobody"
            self._journal.add("isolated", self._me, text, level=logging.WARNING)
        else:
            self._journal.add("unisolated", self._me, "this node hears the others again")
