"""Every worker this node knows, tended for ever: looked at, registered, watched, brought back.

    pending --registered--> ready --looks bad--> not_ready --looks good, registered again--> ready

A worker that does not answer is tried again every `retry_s`, for ever: engines take a minute to start
and may be added before they run. Registration asks, in this order, which contract answers, whether it
is SERVING, who it is, and for its tokenizer; the worker is routable only after all of it. A worker that
comes back is asked again who it is, because another model may have been started on its port.

Nothing here blocks the start of the node, and one worker's trouble never touches another's.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from smg_node.config.worker_url import WorkerUrl
from smg_node.core.errors import ErrorKind, SmgError, unsupported
from smg_node.core.ids import WorkerId
from smg_node.core.ports import Rng
from smg_node.engines.engine import Engine, ModelCard
from smg_node.fleet.bundles import BundleCache
from smg_node.fleet.model import ServedModel
from smg_node.fleet.models import Models
from smg_node.fleet.probe import Tally
from smg_node.fleet.worker import Status, Worker

CARD_TIMEOUT_S: Final = 5.0
TOKENIZER_TIMEOUT_S: Final = 60.0
CONFLICT_RETRY_S: Final = 10.0
DOUBT_S: Final = 0.25
"""A worker that looked bad is looked at this soon again: every request it gets meanwhile fails."""
DRAIN_MAX_S: Final = 180.0
WORKERS_MAX: Final = 4096
_FIRST_LOOKS_APART_S: Final = 0.1
"""Good looks at a worker that is not up yet follow each other quickly: its start is over."""

_log = logging.getLogger(__name__)

OpenEngine = Callable[[WorkerUrl], Awaitable[Engine]]
"""Connects and finds out the contract; SmgError if nothing useful answers."""


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """How often and how long workers are looked at; seconds, see the knobs of `workers`."""

    probe_interval_s: float
    probe_timeout_s: float
    retry_s: float
    down_after: int
    up_after: int


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
    ) -> None:
        self.models = models
        self._options = options
        self._open_engine = open_engine
        self._cache = cache
        self._rng = rng
        self._workers: dict[WorkerId, Worker] = {}
        self._tending: dict[WorkerId, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Tend all workers until cancelled; close every engine at the end."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for worker in self._workers.values():
                    self._tend_later(worker)
                await asyncio.get_running_loop().create_future()
        finally:
            self._group = None
            for worker in self._workers.values():
                await _close(worker)

    def add(self, url: WorkerUrl, labels: Mapping[str, str]) -> Worker:
        """Register a worker; the same address again changes nothing.

        OVERLOADED beyond 4,096; INVALID_REQUEST for a role this release cannot route to.
        """
        if url.role != "regular":
            raise unsupported(
                f"{url.role} workers are routed to in a later release; use role=regular", "url"
            )
        worker_id = worker_id_of(url)
        found = self._workers.get(worker_id)
        if found is not None:
            return found
        if len(self._workers) >= WORKERS_MAX:
            raise SmgError(ErrorKind.OVERLOADED, f"this node has {WORKERS_MAX} workers already")
        worker = Worker(worker_id, url, dict(labels))
        self._workers[worker_id] = worker
        self._tend_later(worker)
        return worker

    def get(self, worker_id: str) -> Worker:
        """Return a worker by id or URL; NOT_FOUND `worker_not_found` otherwise."""
        found = self._workers.get(WorkerId(worker_id))
        if found is None:
            found = next(
                (item for item in self._workers.values() if item.url.endpoint == worker_id), None
            )
        if found is None:
            raise SmgError(
                ErrorKind.NOT_FOUND, f"no worker is called {worker_id!r}", code="worker_not_found"
            )
        return found

    def workers(self) -> list[Worker]:
        """Return all workers, sorted by id."""
        return [self._workers[worker_id] for worker_id in sorted(self._workers)]

    def has_workers(self) -> bool:
        """Whether there is a worker at all, in whatever state."""
        return bool(self._workers)

    def candidates(self, model: ServedModel) -> list[Worker]:
        """Return the workers that may be given work of `model` now, in order of their ids."""
        return [item for item in self.workers() if item.model is model and item.routable]

    def served(self, name: str) -> ServedModel | None:
        """Return the model of that name or alias, if a worker is registered for it, ready or not."""
        found = self.models.find(name)
        if found is None or not any(item.model is found for item in self._workers.values()):
            return None
        return found

    def unknown_yet(self) -> bool:
        """Whether some worker has never said what it serves: a model name may still turn up."""
        return any(item.model is None and not item.draining for item in self._workers.values())

    async def wait_changed(self, timeout_s: float) -> None:
        """Return when some worker's state changes, or after `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()
        except TimeoutError:
            return

    def drain(self, worker_id: str, *, on: bool) -> Worker:
        """Stop or resume placing new work on a worker; what runs goes on."""
        worker = self.get(worker_id)
        worker.draining = on
        self._note_change()
        return worker

    async def remove(self, worker_id: str, *, force: bool) -> None:
        """Forget a worker; unless `force`, when its requests have ended or 180 s have passed."""
        worker = self.drain(worker_id, on=True)
        if not force:
            await _until_idle(worker)
        if self._workers.pop(worker.id, None) is not None:
            task = self._tending.pop(worker.id, None)
            if task is not None:
                task.cancel()
            await _close(worker)

    async def probe(self, worker_id: str) -> Worker:
        """Look at a worker now; its `reason` then says what was seen."""
        worker = self.get(worker_id)
        if worker.engine is not None:
            fine = await self._looks_good(worker.engine)
            worker.reason = "" if fine and worker.status is Status.READY else worker.reason
            if not fine:
                worker.reason = f"did not say SERVING within {self._options.probe_timeout_s} s"
        return worker

    # ── Tending ──────────────────────────────────────────────────────────────

    def _tend_later(self, worker: Worker) -> None:
        if self._group is not None and worker.id not in self._tending:
            self._tending[worker.id] = self._group.create_task(
                self._tend(worker), name=f"tend {worker.url.endpoint}"
            )

    async def _tend(self, worker: Worker) -> None:
        tally = Tally(self._options.down_after, self._options.up_after)
        while True:
            pause_s = self._options.retry_s
            try:
                await self._bring_up(worker, tally)
                await self._watch(worker, tally)
            except SmgError as error:
                if error.kind is ErrorKind.CONFLICT:
                    pause_s = max(pause_s, CONFLICT_RETRY_S)
                self._down(worker, error.message, failed=error.kind is ErrorKind.CONFLICT)
            except Exception as error:
                # A door: whatever one engine provokes, the others must go on being tended.
                _log.exception("tending worker %s failed", worker.url.endpoint)
                self._down(worker, f"internal error: {type(error).__name__}", failed=True)
            tally.restart()
            await asyncio.sleep(pause_s * (0.9 + 0.2 * self._rng.random()))

    async def _bring_up(self, worker: Worker, tally: Tally) -> None:
        """Return when the worker is registered and ready."""
        if worker.engine is None:
            worker.engine = await self._open_engine(worker.url)
        engine = worker.engine
        while not tally.up:
            if not await self._looks_good(engine):
                if not worker.inflight:
                    # Another contract may answer here next, so it is asked from the beginning.
                    await _close(worker)
                raise SmgError(
                    ErrorKind.UPSTREAM_FAILED, f"{engine.contract.value} answers but is not SERVING"
                )
            if not tally.good():
                await asyncio.sleep(_FIRST_LOOKS_APART_S)
        card = await engine.card(CARD_TIMEOUT_S)
        worker.model = await self._model_of(worker, engine, card)
        worker.card = card
        worker.status, worker.reason = Status.READY, ""
        _log.info("worker %s is ready: %s", worker.url.endpoint, worker.model.name)
        self._note_change()

    async def _model_of(self, worker: Worker, engine: Engine, card: ModelCard) -> ServedModel:
        name = worker.url.model or card.model
        if not name:
            raise SmgError(
                ErrorKind.CONFLICT, "the engine names no model; add ?model=NAME to its URL"
            )
        path = self.models.configured_path(name)
        if path is not None:
            bundle = await self.models.configured_bundle(path)
        else:
            source = f"{card.contract.value} {card.model_path or name}"
            try:
                bundle = await engine.tokenizer(TOKENIZER_TIMEOUT_S)
            except SmgError as error:
                kept = await asyncio.to_thread(self._cache.last, source)
                if kept is None:
                    raise SmgError(
                        error.kind,
                        f"no tokenizer from the engine ({error.message}); name a folder with "
                        f"models.{name}.tokenizer",
                    ) from error
                _log.warning("%s: using the cached tokenizer: %s", worker.url.endpoint, error)
                bundle = kept
            else:
                await asyncio.to_thread(self._cache.keep, bundle, source=source)

        def in_use() -> bool:
            others = [item for item in self._workers.values() if item is not worker]
            return any(item.routable and item.model_name() == name for item in others)

        alias = name.rstrip("/").rpartition("/")[2] if name.startswith("/") else None
        return await self.models.adopt(name, bundle, in_use=in_use, alias=alias)

    async def _watch(self, worker: Worker, tally: Tally) -> None:
        """Return when the worker is down, or is no longer what it was."""
        engine = worker.engine
        assert engine is not None
        was_away = False
        while True:
            interval_s = self._options.probe_interval_s
            if was_away:
                interval_s = min(interval_s, DOUBT_S)
            await self._pause(worker, interval_s * (0.8 + 0.4 * self._rng.random()))
            fine = await self._looks_good(engine)
            if fine:
                same = await self._looks_the_same(worker, engine, was_away=was_away)
                if same is False:
                    self._down(worker, "came back as another engine", failed=False)
                    return
                fine = same is True
            was_away = not fine
            if fine:
                tally.good()
            elif tally.bad():
                self._down(worker, "stopped saying SERVING", failed=False)
                return

    async def _pause(self, worker: Worker, pause_s: float) -> None:
        """Wait for the next look; less if a call finds nobody meanwhile."""
        try:
            async with asyncio.timeout(pause_s):
                await worker.suspected.wait()
        except TimeoutError:
            return
        worker.suspected.clear()

    async def _looks_the_same(
        self, worker: Worker, engine: Engine, *, was_away: bool
    ) -> bool | None:
        """Whether it is still the engine that was registered; None if it does not say.

        A restart may be over before anybody looks, and a model's ids mean nothing to another one. Its
        tokenizer is fetched again only where there was time for a restart that somebody saw.
        """
        assert worker.card is not None
        try:
            card = await engine.card(CARD_TIMEOUT_S)
            if _identity(card) != _identity(worker.card):
                return False
            return not was_away or await self._model_of(worker, engine, card) is worker.model
        except SmgError as error:
            return False if error.kind is ErrorKind.CONFLICT else None

    async def _looks_good(self, engine: Engine) -> bool:
        try:
            return await engine.serving(self._options.probe_timeout_s)
        except SmgError:
            return False

    def _down(self, worker: Worker, reason: str, *, failed: bool) -> None:
        status = Status.FAILED if failed else Status.NOT_READY
        if worker.model is None and not failed:
            status = Status.PENDING
        if worker.reason != reason:
            _log.warning("worker %s is %s: %s", worker.url.endpoint, status.value, reason)
        worker.status, worker.reason = status, reason
        self._note_change()

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def worker_id_of(url: WorkerUrl) -> WorkerId:
    """Return the id of the worker at this address: the same on every node."""
    digest = hashlib.blake2b(url.endpoint.encode(), digest_size=6).hexdigest()
    return WorkerId(f"w-{digest}")


def _identity(card: ModelCard) -> tuple[object, ...]:
    """Return what an engine cannot change without having been started anew."""
    return (
        card.model,
        card.model_path,
        card.vocabulary,
        card.context,
        card.prompt_max,
        card.eos_ids,
    )


async def _until_idle(worker: Worker) -> None:
    """Return when no call of ours is open on `worker`, or after 180 s."""
    worker.idle = asyncio.Event()
    if not worker.inflight:
        return
    try:
        async with asyncio.timeout(DRAIN_MAX_S):
            await worker.idle.wait()
    except TimeoutError:
        _log.warning("worker %s is removed with %d open requests", worker.id, worker.inflight)


async def _close(worker: Worker) -> None:
    engine, worker.engine = worker.engine, None
    if engine is not None:
        await engine.close()
