"""Traffic of one world: engines, clients behind a load balancer, and the fate of each request.

A client is sent to any node that the load balancer believes in, which it learns late. A client that
is cut off or refused asks again, at another node if there is one, a few times. One in twenty hangs
up before its answer is whole.
"""

from typing import Final, Protocol

from smg_chaos.simulate.base.random_sources import chance
from smg_chaos.simulate.base.virtual_clock import ARRIVAL, MS, SECOND
from smg_chaos.simulate.hosts.host import Node
from smg_chaos.simulate.hosts.ports import HasHosts, HasNodes, HasTrace
from smg_chaos.simulate.whole.client_request import Ending, Request
from smg_chaos.simulate.whole.engines import VirtualEngine, bundle
from smg_chaos.simulate.whole.request_front import Front, FrontWorld
from smg_chaos.simulate.whole.request_judge import Judge
from smg_chaos.simulate.whole.traffic_setting import TrafficSetting

_WAY_US: Final = (200, 4 * MS)
"""From a client to a node."""
_AGAIN_US: Final = (50 * MS, 400 * MS)
_TRIES_MAX: Final = 4
_HANGS_UP: Final = 0.05
_LATE_US: Final = SECOND
"""So long a load balancer takes to see that a node is gone."""
_BEGINNINGS: Final = ("once upon a time there was a node ", "tell me all about gossip ", "")


class TrafficWorld(FrontWorld, HasHosts, HasNodes, HasTrace, Protocol):
    """The world in which clients ask."""


class Traffic:
    """The traffic of one world."""

    def __init__(self, world: TrafficWorld, setting: TrafficSetting) -> None:
        self.world = world
        self.setting = setting
        self.judge = Judge(self)
        self._own = chance(world.setting.seed, "clients")
        files = bundle()
        self.engines = {
            name: VirtualEngine(world, name, setting, files) for name in setting.engines
        }
        self.asked: list[Request] = []
        self.crowd = 1.0
        """How many times more clients come than usually."""
        self.moved = 0
        """Answers that went on elsewhere in the middle."""
        self._fronts: dict[Node, Front] = {}
        self._ended_us: dict[str, int] = {}
        self._ending = False
        self.calm = False
        """Whether nothing befalls engines any more."""
        world.agenda.deed(setting.from_ms * MS, self._come)

    # ── Lives ────────────────────────────────────────────────────────────────

    def born(self, node: Node) -> None:
        """Begin a life's requests."""
        self._fronts[node] = Front(self, node)

    def ended(self, request: Request, ending: Ending, why: str = "") -> None:
        """Take note of what became of a request, and let its client ask again where that makes sense."""
        self.judge.note(request.end(ending, why))
        if self.world.trace is not None:
            now_us = self.world.agenda.now_us
            self.world.trace.say(f"{now_us} request {request.number} {ending} {request.told} {why}")
        if request.gone:
            return
        if ending in ("cut", "refused") and request.tries < _TRIES_MAX and not self._ending:
            self.world.agenda.deed(self._in(_AGAIN_US), self._ask, request)

    def over(self, node: Node) -> None:
        """Cut what a life has open: its process is gone."""
        front = self._fronts.pop(node)
        self._ended_us[node.host.label] = self.world.agenda.now_us
        front.over()
        for request in front.take_open():
            self.ended(request, "cut", "the node is gone")

    def fronts(self) -> list[Front]:
        """Return those of all living nodes, in the order of their hosts."""
        return [self._fronts[node] for node in self.world.nodes()]

    # ── Clients ──────────────────────────────────────────────────────────────

    def end(self) -> None:
        """Let no client come any more."""
        self._ending = True

    def _come(self) -> None:
        if self._ending:
            return
        self._ask(None)
        apart_s = self._own.expovariate(self.setting.requests_per_s * self.crowd)
        self.world.agenda.deed(self.world.agenda.now_us + int(apart_s * SECOND) + 1, self._come)

    def _ask(self, before: Request | None) -> None:
        own = self._own
        if self._ending:
            return
        number = len(self.asked)
        low, high = self.setting.tokens
        request = Request(
            number=number,
            prompt=self._prompt(number) if before is None else before.prompt,
            tokens=own.randint(low, high) if before is None else before.tokens,
            since_us=self.world.agenda.now_us,
            tries=1 if before is None else before.tries + 1,
        )
        self.asked.append(request)
        labels = self._believed()
        label = labels[own.randrange(len(labels))]
        node = self.world.hosts[label].node
        if node is None or node.leaving or node.superseded:
            self.ended(request, "refused", "nobody listens")
            return
        front = self._fronts[node]
        front.expect(request)
        self.world.agenda.plan(self._in(_WAY_US), ARRIVAL, node, front.ask, (request,))
        if own.random() < _HANGS_UP:
            us = self._in((10 * MS, 600 * MS))
            self.world.agenda.deed(us, self._hang_up, node, request)

    def _prompt(self, number: int) -> str:
        beginning = _BEGINNINGS[self._own.randrange(len(_BEGINNINGS))]
        return f"{beginning}{number} {self._own.randrange(1 << 30):x}"

    def _hang_up(self, node: Node, request: Request) -> None:
        front = self._fronts.get(node)
        if front is None or request.ending:
            return
        self.judge.note(request.end("cut", "the client hung up"))
        request.gone = True
        due_us = self._in(_WAY_US)
        self.world.agenda.plan(due_us, ARRIVAL, node, front.hang_up, (request,))

    def _believed(self) -> list[str]:
        """Return the nodes that the load balancer sends clients to."""
        now_us = self.world.agenda.now_us
        hosts = self.world.hosts.values()
        late = [
            host.label
            for host in hosts
            if host.node is not None or now_us - self._ended_us.get(host.label, 0) < _LATE_US
        ]
        return late or [host.label for host in hosts]

    def _in(self, span_us: tuple[int, int]) -> int:
        return self.world.agenda.now_us + self._own.randrange(*span_us)
