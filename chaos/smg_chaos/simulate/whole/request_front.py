"""Request front of one life: admission, worker choice, and what other nodes are told of it.

Everything that decides is the node's own code: shares of limits, policies, prefix index, loads, breakers. Here is
only what stands between them and the world, as `pipeline/placement` and `fleet` do it.
"""

from typing import Final, Protocol

from smg_chaos.routing.model.cache_knowledge import Indexed
from smg_chaos.simulate.base.random_sources import chance
from smg_chaos.simulate.base.virtual_clock import CALL, MS, SECOND
from smg_chaos.simulate.hosts.host import Node
from smg_chaos.simulate.hosts.ports import HasSeed
from smg_chaos.simulate.whole.client_request import Request
from smg_chaos.simulate.whole.counted_call import Hold, Post
from smg_chaos.simulate.whole.request_judge import JudgedWorld
from smg_chaos.simulate.whole.request_run import Errand, ErrandTraffic
from smg_chaos.simulate.whole.traffic_setting import MODEL, TrafficSetting
from smg_mesh.state.workers.shared_load import LoadView
from smg_mesh.sync.bound_views import BoundRegisters
from smg_node.core.generation.request import TokenIds
from smg_node.fleet.health.circuit_breaker import Breaker, BreakerOptions
from smg_node.fleet.load.worker_load import WorkerLoad
from smg_node.pipeline.retry import Avoid
from smg_node.routing.hash_ring import Ring
from smg_node.routing.policy import Asked
from smg_node.routing.policy_registry import OwnBindings, Policies
from smg_node.routing.pool import Pool
from smg_node.routing.retry_budget import RetryBudget, RetryOptions

_TICK_US: Final = 100 * MS


class FrontWorld(JudgedWorld, HasSeed, Protocol):
    """The world of a node that answers requests."""


class FrontTraffic(ErrandTraffic, Protocol):
    """The requests of the world, as far as one node is concerned."""

    setting: TrafficSetting

    @property
    def world(self) -> FrontWorld:
        """The world itself."""
        ...


class Front:
    """One life's requests. Without a node that runs nothing of it happens."""

    def __init__(self, traffic: FrontTraffic, node: Node) -> None:
        assert node.life is not None
        assert isinstance(node.life.views.registers, BoundRegisters)
        self.traffic = traffic
        self.world: FrontWorld = traffic.world
        self.node = node
        self.rng = chance(self.world.setting.seed, "front", node.host.label, node.host.lives)
        self.options: RetryOptions = RetryOptions()
        self.budget: RetryBudget = RetryBudget()
        self.began_us = self.world.agenda.now_us
        self._open: dict[Request, None] = {}
        self.errands: dict[Request, Errand] = {}
        self._draining: frozenset[str] = frozenset()
        self.posts: dict[str, Post] = {}
        self.loads = LoadView(node.life.views.registers, node.name)
        self.loads.watch(self._hear)
        self.knowledge = Indexed(MODEL, follows=())
        self._policy = Policies(OwnBindings()).named(traffic.setting.policy)
        self._stale = True
        node.life.views.workers.watch(self._changed)
        self._tick()

    # ── Time ─────────────────────────────────────────────────────────────────

    @property
    def now_s(self) -> float:
        """The node's monotonic clock, which runs as the world's."""
        return self.world.agenda.now_us / SECOND

    def later(self, after_us: int, deed: object, *arguments: object) -> None:
        """Do something then, unless the life is over; a node that stands still does it when it goes on."""
        agenda = self.world.agenda
        agenda.plan(agenda.now_us + after_us, CALL, self.node, deed, arguments)

    def _tick(self) -> None:
        """Look at workers, and say what is open: what a node does all the time."""
        now_s, life = self.now_s, self.node.life
        assert life is not None
        self.known()
        for worker, post in self.posts.items():
            if post.breaker.look_s(now_s) <= now_s:
                there = self.traffic.engines[worker].is_there(self.node.name)
                post.breaker.looked(now_s, good=there)
            post.load.tick(now_s)
        self.knowledge.tick(now_s)
        life.run(self._publish)
        self.later(_TICK_US, self._tick)

    def _publish(self) -> None:
        self.loads.publish(
            {
                worker: (post.load.own_inflight, post.load.own_tokens)
                for worker, post in self.posts.items()
                if post.load.own_inflight
            }
        )

    # ── Workers ──────────────────────────────────────────────────────────────

    def _changed(self, *_: object) -> None:
        self._stale = True

    def _hear(self, workers: object) -> None:
        others = self.loads.others()
        for worker, post in self.posts.items():
            post.load.hear(*others.get(worker, (0, 0)))

    def known(self) -> None:
        """Take over which workers there are; calls at those that were removed go on elsewhere."""
        if not self._stale:
            return
        self._stale = False
        assert self.node.life is not None
        records = {record.id: record for record in self.node.life.views.workers.records()}
        for worker in sorted(records.keys() - self.posts.keys()):
            if worker in self.traffic.engines:
                load = WorkerLoad(worker)
                load.sized(self.traffic.setting.slots)
                load.hear(*self.loads.other(worker))
                self.posts[worker] = Post(load, Breaker(BreakerOptions(), self.rng))
        for worker in sorted(self.posts.keys() - records.keys()):
            del self.posts[worker]
        self._draining = frozenset(worker for worker, record in records.items() if record.draining)
        for errand in list(self.errands.values()):
            errand.workers_changed(records.keys())

    def place(self, ids: TokenIds, avoid: Avoid) -> Hold | None:
        """Choose a worker and count a call in; None if there is none to be had now."""
        self.known()
        now_s = self.now_s
        posts = [
            post
            for worker, post in sorted(self.posts.items())
            if worker not in self._draining
            and worker not in avoid.gone
            and (post.breaker.usable(now_s) or self._last_hope(post, now_s))
        ]
        posts = [post for post in posts if post.load.worker not in avoid.failed] or posts
        loads = [post.load for post in posts]
        for worse in ("stuck", "full", "overloaded"):
            loads = [load for load in loads if not getattr(load, worse)] or loads
        if not loads:
            return None
        known = [(worker, 1.0) for worker in sorted(self.posts)]
        pool = Pool(loads, known, Ring(known))
        prompt = self.knowledge.of(ids, now_s)
        asked = Asked(MODEL, ids=ids, now_s=now_s, beginning=prompt)
        worker = pool.candidates[self._policy.choose(asked, pool, self.rng)].worker
        self.knowledge.dispatched(prompt, worker, now_s)
        return Hold(self.posts[worker], len(ids), now_s)

    def _last_hope(self, post: Post, now_s: float) -> bool:
        alone = not any(one.breaker.usable(now_s) for one in self.posts.values())
        return alone and post.breaker.probe_free(now_s, alone=True)

    # ── Requests ─────────────────────────────────────────────────────────────

    def expect(self, request: Request) -> None:
        """Learn that a client has a connection with a request on it."""
        self._open[request] = None

    def take_open(self) -> list[Request]:
        """Return all requests that have not ended, when the process has."""
        return [request for request in self._open if not request.ending]

    def forget(self, request: Request) -> None:
        """Have no more of a request."""
        self.errands.pop(request, None)
        self._open.pop(request, None)

    def ask(self, request: Request) -> None:
        """Take a request, which has come."""
        if request.ending:
            self._open.pop(request, None)
            return
        errand = self.errands[request] = Errand(self, request)
        errand.begin()

    def hang_up(self, request: Request) -> None:
        """Learn that the client of a request is gone."""
        errand = self.errands.get(request)
        if errand is not None:
            errand.abandon()

    def over(self) -> None:
        """The process is over: engines see its connections go."""
        for errand in list(self.errands.values()):
            errand.gone()
        self.errands.clear()

    def idle(self) -> str:
        """Return what is left although nothing is open, "" if nothing is."""
        for worker, post in sorted(self.posts.items()):
            load = post.load
            if load.own_inflight or load.own_tokens:
                counts = f"{load.own_inflight} calls and {load.own_tokens} tokens"
                return f"{self.node.host.label} has {counts} at {worker}, and nothing is open"
        return ""
