"""Engines of a world: the simulated engine itself, in memory, driven by the virtual clock.

What it says takes a moment to its node, in order. An engine that dies cuts all its calls and comes back with
nothing; one that stands still says nothing and forgets nothing; one that a node cannot reach does not exist for
that node.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

from smg_chaos.engine.protocol.rpc_call import GONE, Call, End
from smg_chaos.engine.scripts.bundle import Bundle, tiny_bundle
from smg_chaos.engine.scripts.scripts import Continuing
from smg_chaos.engine.servers.in_memory import MemoryFace
from smg_chaos.engine.settings import EngineSettings
from smg_chaos.engine.simulator.engine import Engine
from smg_chaos.simulate.base.virtual_clock import ARRIVAL, MS, SECOND
from smg_chaos.simulate.hosts.host import Node
from smg_chaos.simulate.hosts.ports import HasAgenda
from smg_chaos.simulate.whole.letter_vocabulary import IDS
from smg_chaos.simulate.whole.traffic_setting import MODEL, TrafficSetting

_WAY_US: Final = 300
"""From an engine to a node."""
_CONTEXT: Final = 512
Heard = Callable[[Sequence[bytes], End | None], None]


class EngineCall:
    """One call of a node; `heard` is told what comes of it, on the node's loop."""

    def __init__(self, engine: "VirtualEngine", node: Node, heard: Heard) -> None:
        self.engine = engine
        self.node = node
        self._heard = heard
        self.closed = False
        self.call: Call | None = None

    def bell(self, call: Call) -> None:
        """Send on what the engine has said."""
        while not self.closed:
            messages, end = call.take(), call.end
            if messages or end is not None:
                self.send(messages, end)
            if not messages or end is not None:
                return

    def send(self, messages: Sequence[bytes], end: End | None) -> None:
        """Let this come to the node a moment later."""
        agenda = self.engine.world.agenda
        self.closed = end is not None
        due_us = agenda.now_us + _WAY_US
        agenda.plan(due_us, ARRIVAL, self.node, self._heard, (messages, end))

    def cancel(self) -> None:
        """Hang up: the engine has no more of it."""
        self.engine.drop(self)


class VirtualEngine:
    """One engine, whichever process runs as it just now."""

    def __init__(
        self, world: HasAgenda, name: str, setting: TrafficSetting, bundle: Bundle
    ) -> None:
        self.world = world
        self.name = name
        self._setting = setting
        self._bundle = bundle
        self._unreached: dict[str, int] = {}
        self._calls: dict[EngineCall, None] = {}
        self._planned_us = -1
        self._stalls = 0
        self.up = False
        self._changed_us = 0
        self.begin()

    # ── Its life ─────────────────────────────────────────────────────────────

    def begin(self) -> None:
        """Start a process, if none runs."""
        if self.up:
            return
        self.up = True
        self._worse()
        settings = EngineSettings(
            model=MODEL,
            context=_CONTEXT,
            slots=self._setting.slots,
            step_s=self._setting.step_s,
            coalesce=1,
            events="none",
        )
        engine = Engine(settings, self._bundle, Continuing(IDS), now_s=self._now_s)
        self._face = MemoryFace(engine, now_s=self._now_s)

    def die(self) -> None:
        """End the process: all calls are cut."""
        if self.up:
            self.up = False
            self._worse()
            self._face.engine.die(1)
            self._cut(None)

    def stall(self, *, on: bool) -> None:
        """Let it stand still, until it was let go on as often."""
        self._stalls += 1 if on else -1
        self._worse()
        if not self._stalls and self.up:
            self._turn(self._planned_us)

    def cut_off(self, name: str, *, on: bool) -> None:
        """Let a node not reach it; calls under way are lost."""
        self._unreached[name] = self._unreached.get(name, 0) + (1 if on else -1)
        self._worse()
        if on:
            self._cut(name)

    def heal(self) -> None:
        """Let all be well with it."""
        self._unreached.clear()
        self._stalls = 0
        self._worse()
        self.begin()
        self._turn(self._planned_us)

    def is_there(self, name: str) -> bool:
        """Return whether that node finds it well."""
        return self.up and not self._stalls and not self._unreached.get(name)

    @property
    def well_for_us(self) -> int:
        """For how long nothing has been wrong with it, and every node could reach it."""
        if not self.up or self._stalls or any(self._unreached.values()):
            return 0
        return self.world.agenda.now_us - self._changed_us

    @property
    def open(self) -> int:
        """Requests that it has."""
        return self._face.engine.active

    @property
    def is_full(self) -> bool:
        """Whether a call that comes now waits for a slot."""
        return self.open >= self._setting.slots

    def _worse(self) -> None:
        self._changed_us = self.world.agenda.now_us

    def _cut(self, name: str | None) -> None:
        for call in [one for one in self._calls if name is None or one.node.name == name]:
            if not call.closed:
                call.send((), GONE)
            self.drop(call)

    # ── Calls ────────────────────────────────────────────────────────────────

    def start(self, node: Node, body: bytes, heard: Heard) -> EngineCall:
        """Take a call of a node."""
        one = EngineCall(self, node, heard)
        if not self.up or self._unreached.get(node.name):
            one.send((), GONE)
            return one
        self._calls[one] = None
        method = f"/{self._face.engine.contract.service}/Generate"
        one.call = call = self._face.service.start(method, body, self._now_s)
        call.bell = one.bell
        one.bell(call)
        self._turn(self._planned_us)
        return one

    def drop(self, one: EngineCall) -> None:
        """Have no more of a call."""
        one.closed = True
        self._calls.pop(one, None)
        if one.call is not None and one.call.end is None:
            one.call.cancel(self._now_s)

    def check(self) -> None:
        """Assert that slots and blocks belong to calls that go on."""
        self._face.engine.check()

    # ── Its clock ────────────────────────────────────────────────────────────

    @property
    def _now_s(self) -> float:
        return self.world.agenda.now_us / SECOND

    def _turn(self, planned_us: int) -> None:
        """Do what is due, and plan the next time."""
        if planned_us != self._planned_us or not self.up or self._stalls:
            return
        self._face.engine.advance(self._now_s)
        for one in [one for one in self._calls if one.closed]:
            del self._calls[one]
        due_s = self._face.engine.due_s()
        if due_s is not None:
            now_us = self.world.agenda.now_us
            self._planned_us = max(now_us + 1, int(due_s * SECOND) + 1)
            self.world.agenda.deed(self._planned_us, self._turn, self._planned_us)


@cache
def bundle() -> Bundle:
    """Return the folder of the engines' model, made once a process: its vocabulary takes 0.1 s to learn."""
    return tiny_bundle(MODEL, vocabulary=4160, context=_CONTEXT)


assert _WAY_US < MS
