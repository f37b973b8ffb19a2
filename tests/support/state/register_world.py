"""Nodes that hear each other's registers over a network that a test decides about."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from smg_mesh.config import StateOptions
from smg_mesh.crdt.registers.ephemeral_registers import Registers
from smg_mesh.sync.bound_views import BoundRegisters


@dataclass(frozen=True, slots=True)
class Rumor:
    """One saying on its way."""

    origin: str
    kind: str
    key: str
    content: bytes
    at_ms: int

    @property
    def size_bytes(self) -> int:
        """About what it costs in a packet: names, an order, the content."""
        return len(self.origin) + len(self.kind) + len(self.key) + 20 + len(self.content)


class RegisterNode:
    """One node: its registers, and what it said."""

    def __init__(self, world: "RegisterWorld", name: str, boot: int, options: StateOptions) -> None:
        self.name = name
        self.boot = boot
        self.said: list[Rumor] = []
        self.wakes: list[int] = []
        self.registers = Registers(name, options=options, say=self._say)
        self.registers.change_boot(boot, now_ms=world.now_ms())
        self.bound = BoundRegisters(self.registers, world.now_ms, self.wakes.append)
        self._world = world

    def _say(self, kind: str, key: str, content: bytes) -> None:
        rumor = Rumor(self.name, kind, key, content, self._world.now_ms())
        self.said.append(rumor)
        self._world.spread(rumor)

    def hear(self, rumor: Rumor) -> bool:
        """Hear what another node said."""
        now_ms = self._world.now_ms()
        return self.registers.hear(
            rumor.origin, rumor.kind, rumor.key, rumor.content, now_ms=now_ms
        )


class RegisterWorld:
    """All of them know each other; everything said is heard at once unless `deliver` says otherwise."""

    def __init__(self, *names: str, options: StateOptions | None = None) -> None:
        self._now_ms = 1_000_000
        self._options = options or StateOptions()
        self.nodes: dict[str, RegisterNode] = {}
        self.deliver: Callable[[Rumor, str], bool] = lambda rumor, to: True
        for name in names:
            self.begin(name, boot=1000)

    def __getitem__(self, name: str) -> RegisterNode:
        return self.nodes[name]

    def now_ms(self) -> int:
        """The time, the same for all."""
        return self._now_ms

    def begin(self, name: str, *, boot: int) -> RegisterNode:
        """Start a node, a new life of it if it was there; everybody hears of it."""
        node = self.nodes[name] = RegisterNode(self, name, boot, self._options)
        for other in self.nodes.values():
            other.registers.member_up(name, boot)
            node.registers.member_up(other.name, other.boot)
        return node

    def spread(self, rumor: Rumor) -> None:
        """Bring what was said to everybody else."""
        for node in list(self.nodes.values()):
            if node.name != rumor.origin and self.deliver(rumor, node.name):
                assert node.hear(rumor)

    def pass_time(self, span_ms: int, *, step_ms: int = 50) -> None:
        """Let time pass; registers do what is due."""
        end_ms = self._now_ms + span_ms
        while self._now_ms < end_ms:
            self._now_ms = min(end_ms, self._now_ms + step_ms)
            for node in self.nodes.values():
                node.registers.tick(self._now_ms)

    def kill(self, name: str) -> None:
        """End a node; the others learn of it at once."""
        del self.nodes[name]
        for node in self.nodes.values():
            node.registers.member_gone(name, self._now_ms)

    def said(self) -> Sequence[Rumor]:
        """Return everything that was said, node by node."""
        return [rumor for node in self.nodes.values() for rumor in node.said]
