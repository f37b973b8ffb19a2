"""Fleet: single owner of all registered workers; a failing worker affects no other.

Which workers there are is not decided here: the registry of the cluster says so, and `apply` does
what it says. A worker that is new gets a lifecycle task; one that is called or serves something
else now is brought up anew beside its old connections; one that is gone gets no new calls, and the
open ones may end. Nothing here blocks the start of the node: engines take a minute to start and may
be registered before they run.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.ids import WorkerId
from smg_node.core.ports import Rng
from smg_node.fleet.health.circuit_breaker import Breaker
from smg_node.fleet.health.peer_verdicts import NoPeers, PeerVerdicts
from smg_node.fleet.load.prefill_rate import UsualRates
from smg_node.fleet.load.worker_load import WorkerLoad
from smg_node.fleet.models.model_registry import Models
from smg_node.fleet.models.served_model import AnyModel, RelayedModel, ServedModel
from smg_node.fleet.models.tokenizer_bundles import BundleCache
from smg_node.fleet.workers.engine_identity import EngineClaims, Resolve, unresolved
from smg_node.fleet.workers.engine_looks import close_engine, seen_at
from smg_node.fleet.workers.engine_subscriptions import (
    TICK_S,
    KvEventSink,
    ListenOptions,
    SubscriptionContext,
    note_quiet,
)
from smg_node.fleet.workers.lifecycle_context import FleetOptions, LifecycleContext, OpenEngine
from smg_node.fleet.workers.worker import Status, Worker
from smg_node.fleet.workers.worker_lifecycle import WorkerLifecycle
from smg_node.fleet.workers.worker_spec import DeclaredWorker, ids_named, worker_id_of

__all__ = ["Fleet", "FleetOptions", "ListenOptions", "OpenEngine", "worker_id_of"]

DRAIN_MAX_S: Final = 180.0

_log = logging.getLogger("smg_node.fleet")


class Fleet:
    """The one owner of all workers."""

    def __init__(
        self,
        options: FleetOptions,
        models: Models,
        *,
        open_engine: OpenEngine,
        cache: BundleCache,
        rng: Rng,
        listen: ListenOptions | None = None,
        resolve: Resolve = unresolved,
    ) -> None:
        self.models = models
        self.listening = SubscriptionContext(listen if listen is not None else ListenOptions(), rng)
        self.version = 0
        """Grows whenever some worker's state changes: what was worked out before may be wrong then."""
        self._ground = LifecycleContext(
            options=options,
            models=models,
            open_engine=open_engine,
            cache=cache,
            rng=rng,
            outlook=NoPeers(),
            changed=self._note_change,
            in_use=self._in_use,
            listening=self.listening,
            spawn=self._spawn,
            claims=EngineClaims(resolve),
        )
        self._workers: dict[WorkerId, Worker] = {}
        self._tenders: dict[WorkerId, WorkerLifecycle] = {}
        self._tending: dict[WorkerId, asyncio.Task[None]] = {}
        self._leaving: dict[WorkerId, list[Worker]] = {}
        self._by_model: dict[int, tuple[Worker, ...]] | None = None
        self._usual_rates = UsualRates()
        self._group: asyncio.TaskGroup | None = None
        self._changed = asyncio.Event()
        self._began: Callable[[], None] | None = None
        self._watchers: list[Callable[[], None]] = []
        self.moved: Final[list[WorkerLoad]] = []
        """Whose counts changed since they were weighed: see to it before a decision reads what they come to."""

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed` whenever `version` grows, in the middle of whatever made it grow."""
        self._watchers.append(changed)

    def rely_on(self, outlook: PeerVerdicts, *, began: Callable[[], None]) -> None:
        """Share the probing with other nodes; to be called before there are workers.

        `began` is called whenever this node's first call on some worker begins.
        """
        assert not self._workers
        self._ground.outlook = outlook
        self._began = began

    def follow_with(self, ear: KvEventSink) -> None:
        """Let `ear` receive the engines' KV events; to be called before there are workers."""
        assert not self._workers
        self.listening.ear = ear

    async def run(self) -> None:
        """Run the lifecycles of all workers until cancelled; close every engine at the end."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for worker in self._workers.values():
                    self._tend(worker)
                await self._tick()
        finally:
            self._group = None
            self._tending.clear()
            self._tenders.clear()
            leaving = [worker for workers in self._leaving.values() for worker in workers]
            self._leaving.clear()
            self._note_change()
            for worker in [*self._workers.values(), *leaving]:
                await close_engine(worker)

    async def _tick(self) -> None:
        """Let time pass for every worker, as long as there are any."""
        while True:
            while not self._workers:
                await self._changed.wait()
            await asyncio.sleep(TICK_S)
            now_s = asyncio.get_running_loop().time()
            self._tick_loads(now_s)
            self.listening.tick(now_s)

    def _tick_loads(self, now_s: float) -> None:
        """Let time pass for every worker's load; like workers share their prefill rates."""
        first = self._ground.options.load.prefill_rate
        grouped = [(_group_of(worker), worker) for worker in self._workers.values()]
        self._usual_rates.take([(of, one.load.measured) for of, one in grouped], first=first)
        for group, worker in grouped:
            worker.load.tick(now_s, self._usual_rates.of(group, first=first))
            note_quiet(worker, now_s)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        assert self._group is not None
        return self._group.create_task(work, name=name)

    # ── What the registry says ───────────────────────────────────────────────

    def apply(self, changes: Mapping[WorkerId, DeclaredWorker | None]) -> None:
        """Make these workers what the registry says they are; None is one that is registered no more."""
        for worker_id, declared in changes.items():
            found = self._workers.get(worker_id)
            if declared is None:
                if found is not None:
                    self._let_go(found)
            elif found is not None and found.declared.same_engine(declared):
                # Who knew which engine it is may say so no more: it is still that one.
                instance = declared.instance or found.declared.instance
                found.declared = replace(declared, instance=instance)
                found.load.weight = declared.weight
            else:
                load = self._load_of(worker_id)
                load.weight = declared.weight
                if found is not None:
                    self._let_go(found)
                self._workers[worker_id] = worker = self._new_worker(declared, load)
                self._tend(worker)
        if changes:
            self._note_change()

    def _new_worker(self, declared: DeclaredWorker, load: WorkerLoad) -> Worker:
        def turned() -> None:
            # One that was let go may have open calls, and they still say how they end.
            if self._workers.get(worker.id) is not worker:
                return
            tender = self._tenders.get(worker.id)
            if tender is not None:
                tender.turned()
            self._note_turn()

        ground = self._ground
        breaker = Breaker(ground.options.breaker, ground.rng, changed=turned)
        worker = Worker(declared, load, breaker)
        return worker

    def _load_of(self, worker_id: WorkerId) -> WorkerLoad:
        found: list[Worker | None] = [
            self._workers.get(worker_id),
            *self._leaving.get(worker_id, ()),
        ]
        for one in found:
            if one is not None:
                return one.load
        load = WorkerLoad(worker_id, began=self._began, changed=self._note_turn, moved=self.moved)
        load.retune(self._ground.options.load)
        return load

    def _tend(self, worker: Worker) -> None:
        if self._group is not None:
            tender = WorkerLifecycle(worker, self._ground)
            self._tenders[worker.id] = tender
            self._tending[worker.id] = self._group.create_task(
                tender.run(), name=f"tend {worker.url.endpoint}"
            )

    def _let_go(self, worker: Worker) -> None:
        """Place nothing there any more; its connections are closed when its calls have ended."""
        del self._workers[worker.id]
        self.listening.ear.gone(worker)
        tender = self._tenders.pop(worker.id, None)
        task = self._tending.pop(worker.id, None)
        if tender is not None and tender.vigil.on_duty:
            self._ground.outlook.fall_silent(worker.id)
        if task is not None:
            task.cancel()
        if self._group is not None:
            worker.idle = asyncio.Event()
            if not worker.inflight:
                worker.idle.set()
            self._leaving.setdefault(worker.id, []).append(worker)
            self._group.create_task(self._see_off(worker), name=f"close {worker.url.endpoint}")

    async def _see_off(self, worker: Worker) -> None:
        assert worker.idle is not None
        try:
            async with asyncio.timeout(DRAIN_MAX_S):
                await worker.idle.wait()
        except TimeoutError:
            _log.warning("worker %s is closed with %d open requests", worker.id, worker.inflight)
        try:
            await close_engine(worker)
        finally:
            self._leaving[worker.id].remove(worker)
            if not self._leaving[worker.id]:
                del self._leaving[worker.id]
            self._note_change()

    async def gone(self, worker_id: WorkerId, *, force: bool) -> None:
        """Return when a worker that is registered no more has no connection left; `force` cuts its calls."""
        for worker in self._leaving.get(worker_id, ()):
            if force and worker.idle is not None:
                worker.idle.set()
        while worker_id in self._leaving:
            await self._changed.wait()

    # ── What other nodes say ─────────────────────────────────────────────────

    def hear(self, worker_ids: Iterable[str]) -> None:
        """Take in that the peers' verdicts on these workers changed."""
        for worker_id in worker_ids:
            tender = self._tenders.get(WorkerId(worker_id))
            if tender is not None:
                tender.hear()

    def hear_load(self, worker_id: str, *, requests: int, tokens: int) -> None:
        """Take in how much all other nodes together have open on a worker."""
        worker = self._workers.get(WorkerId(worker_id))
        if worker is not None:
            worker.load.hear(requests, tokens)

    # ── Questions ────────────────────────────────────────────────────────────

    def get(self, worker_id: str) -> Worker:
        """Return a worker by id or URL, in any spelling; NOT_FOUND `worker_not_found` otherwise."""
        names = (WorkerId(worker_id), *ids_named(worker_id))
        found = next((self._workers[name] for name in names if name in self._workers), None)
        if found is None:
            raise SmgError(
                ErrorKind.NOT_FOUND, f"no worker is called {worker_id!r}", code="worker_not_found"
            )
        return found

    def workers(self) -> list[Worker]:
        """Return all workers, sorted by id."""
        return [self._workers[worker_id] for worker_id in sorted(self._workers)]

    def loads(self) -> list[WorkerLoad]:
        """Return how much is under way on each worker, in no order."""
        return [worker.load for worker in self._workers.values()]

    def following(self, worker_id: str) -> bool:
        """Return whether this node receives that worker's KV events."""
        worker = self._workers.get(WorkerId(worker_id))
        return worker is not None and worker.following

    def has_workers(self) -> bool:
        """Whether there is a worker at all, in whatever state."""
        return bool(self._workers)

    def serving(self, model: AnyModel) -> tuple[Worker, ...]:
        """Return every worker of `model`, whatever its state, in order of their ids."""
        if self._by_model is None:
            found: dict[int, list[Worker]] = {}
            for worker in self.workers():
                if (serves := worker.serves) is not None:
                    found.setdefault(id(serves), []).append(worker)
            self._by_model = {model_id: tuple(all_of) for model_id, all_of in found.items()}
        return self._by_model.get(id(model), ())

    def candidates(self, model: ServedModel) -> list[Worker]:
        """Return the workers that may be given work of `model` now, in order of their ids."""
        return [item for item in self.serving(model) if item.routable]

    def served(self, name: str) -> ServedModel | None:
        """Return the model of that name or alias, if a worker is registered for it, ready or not."""
        found, by_model = self.models.find(name), self._by_model
        if found is None or by_model is None:
            return found if found is not None and self.serving(found) else None
        # Asked for each request: who serves it is known until a worker comes, goes or changes.
        return found if id(found) in by_model else None

    def relayed(self, name: str) -> RelayedModel | None:
        """Return the model of that name or alias that an HTTP worker is registered for, ready or not."""
        found = self.models.relayed(name)
        return found if found is not None and self.serving(found) else None

    def unknown_yet(self) -> bool:
        """Whether some worker has never said what it serves: a model name may still turn up."""
        return any(item.serves is None and not item.draining for item in self._workers.values())

    def _in_use(self, worker: Worker, name: str) -> bool:
        others = [item for item in self._workers.values() if item is not worker]
        return any(item.routable and item.model_name() == name for item in others)

    async def wait_changed(self, timeout_s: float) -> None:
        """Return when some worker's state changes, or after `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()
        except TimeoutError:
            return

    # ── Wishes ───────────────────────────────────────────────────────────────

    def doubt(self, model: AnyModel) -> None:
        """Probe the workers of `model` that are said to be down: a request waits for one."""
        for worker in self.serving(model):
            if worker.status is not Status.READY and not worker.draining:
                worker.suspect()

    def doubt_unknown(self) -> None:
        """Probe the workers that never said what they serve: a request names an unknown model."""
        for worker in self._workers.values():
            if worker.serves is None and not worker.draining:
                worker.suspect()

    async def probe(self, worker_id: str) -> Worker:
        """Probe a worker now; its `reason` then says what was seen."""
        worker = self.get(worker_id)
        if worker.engine is not None:
            seen = await seen_at(worker.engine, self._ground.options.probe_timeout_s)
            if seen or worker.status is Status.READY:
                worker.reason = seen
        return worker

    def retune(self, options: FleetOptions) -> None:
        """Take new options of probes, breakers and loads."""
        self._ground.options = options
        for worker in self._workers.values():
            worker.breaker.retune(options.breaker)
            worker.load.retune(options.load)
        for tender in self._tenders.values():
            tender.retune()

    def retune_listening(self, options: ListenOptions) -> None:
        """Take new options of engine subscriptions."""
        self.listening.options = options
        for tender in self._tenders.values():
            tender.listen()

    def retune_engines(self, *, first_event_s: float, stall_s: float) -> None:
        """Allow engines this much silence, before and after the first message, in calls yet to
        come.
        """
        self._ground.limits_s = (first_event_s, stall_s)
        for worker in self._workers.values():
            if worker.engine is not None:
                worker.engine.retune(first_event_s=first_event_s, stall_s=stall_s)

    def _note_change(self) -> None:
        self._by_model = None
        self._note_turn()

    def _note_turn(self) -> None:
        """Note that some worker became usable or unusable; each serves what it did."""
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()
        for changed in self._watchers:
            changed()


def _group_of(worker: Worker) -> tuple[str, str]:
    """Return which workers are like this one: they do the same for the same model."""
    return (worker.serves.pool if worker.serves is not None else "", worker.role)
