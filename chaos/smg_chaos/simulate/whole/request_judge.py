"""Request judge: invariants of requests, tested at every outcome and when all is quiet.

That an answer is a prefix of its script, whole or with a truthful end, is a matter of
`client_request`; that no limit is exceeded, of `rights/limit_judge`; that nothing acknowledged is
lost, of `replicas/checkers`. Here is the rest: no request is sent to a worker that its node knows
removed, no healthy engine breaks a call, no client is told that there is no worker while there is a
well one, and in the end nothing is held any more.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from smg_chaos.simulate.base.virtual_clock import SECOND
from smg_chaos.simulate.hosts.host import Node
from smg_chaos.simulate.hosts.ports import HasAgenda, PromiseReport
from smg_chaos.simulate.whole.client_request import Request
from smg_chaos.simulate.whole.counted_call import Hold
from smg_chaos.simulate.whole.engines import VirtualEngine
from smg_mesh.state.workers.shared_load import LoadView
from smg_node.core.errors import SmgError
from smg_node.engines.transport.grpc_status import CLOSED_CODE
from smg_node.pipeline.retry import STALLED_CODE

_SICK_US: Final = 5 * SECOND
"""So long after it got well a call may still break that was made while an engine was not."""
_FORGIVEN_US: Final = 12 * SECOND
"""Where all breakers are open, the one that opened first gets a probe after a second, and others by and by."""
_REQUESTS_MAX: Final = 400
"""So many may be open at one node of a world: more come only when something leaks."""


class JudgedWorld(HasAgenda, PromiseReport, Protocol):
    """The world of the requests that are judged."""


class JudgedFront(Protocol):
    """The requests of one node that are judged."""

    node: Node
    loads: LoadView
    began_us: int

    @property
    def errands(self) -> Mapping[Request, object]:
        """The requests that are open."""
        ...

    def idle(self) -> str:
        """Return what is left although nothing is open."""
        ...


class JudgedTraffic(Protocol):
    """The requests of the world that are judged."""

    engines: dict[str, VirtualEngine]
    asked: list[Request]

    @property
    def world(self) -> JudgedWorld:
        """The world itself."""
        ...

    def fronts(self) -> Sequence[JudgedFront]:
        """Return those of all living nodes."""
        ...


class Judge:
    """The judge of one world."""

    def __init__(self, traffic: JudgedTraffic) -> None:
        self._traffic = traffic
        self._world = traffic.world

    def note(self, wrong: str) -> None:
        """Take what a check found; "" is nothing."""
        if wrong:
            self._world.broken(wrong)

    def placed(self, front: JudgedFront, worker: str) -> None:
        """Look at a choice that was made."""
        label, life = front.node.host.label, front.node.life
        assert life is not None
        record = life.views.workers.get(worker)
        if record is None:
            self._world.broken(f"{label} sent a request to {worker}, which it knows removed")
        elif record.draining:
            self._world.broken(f"{label} sent a request to {worker}, which is drained")
        if len(front.errands) > _REQUESTS_MAX:
            self._world.broken(f"{label} has {len(front.errands)} requests open")

    def broke(self, front: JudgedFront, hold: Hold, error: SmgError) -> None:
        """Look at a call that broke: its engine had a reason, or the node let go of it itself.

        A node that stood still meanwhile takes its own silence for the engine's; and who waits for a slot in a crowd
        hears nothing for as long as that takes.
        """
        worker = hold.worker
        if error.code == CLOSED_CODE or front.node.stopped_us >= hold.since_s * SECOND - 1:
            return
        engine = self._traffic.engines[worker]
        if error.code == STALLED_CODE and not hold.has_spoken and engine.is_full:
            return
        well_us = engine.well_for_us
        if well_us > _SICK_US:
            label = front.node.host.label
            since_s = well_us / SECOND
            self._world.broken(
                f"{label}'s call of {worker} broke, which is well for {since_s:.1f} s: {error}"
            )

    def nobody(self, front: JudgedFront, request: Request) -> None:
        """Look at a request that is told that there is no worker."""
        now_us, life = self._world.agenda.now_us, front.node.life
        assert life is not None
        for record in life.views.workers.records():
            engine = self._traffic.engines.get(record.id)
            if engine is None or record.draining or not engine.is_there(front.node.name):
                continue
            if min(engine.well_for_us, now_us - front.began_us) > _FORGIVEN_US:
                self._world.broken(
                    f"{front.node.host.label} had no worker for request {request.number}, "
                    f"and {record.id} is well"
                )

    def quiet(self) -> None:
        """Look when nothing is asked any more: nothing is held, nowhere."""
        for front in self._traffic.fronts():
            self.note(front.idle())
            if front.errands:
                count = len(front.errands)
                self._world.broken(f"{front.node.host.label} still has {count} requests")
            others = dict(front.loads.others())
            if others:
                self._world.broken(f"{front.node.host.label} believes that others have {others}")
        for engine in self._traffic.engines.values():
            engine.check()
            if engine.open:
                self._world.broken(f"{engine.name} still works on {engine.open} requests")
        for request in self._traffic.asked:
            if not request.ending:
                self._world.broken(f"request {request.number} never ended")
