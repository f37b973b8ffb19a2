"""Worker lifecycle: brings up, probes and re-registers one worker for as long as it is in the
registry.

    pending --registered--> ready --is down--> not_ready --is up, registered again--> ready

Registration asks, in this order, which contract answers, whether it is SERVING, its identity, and
for its tokenizer; the worker is routable only after all of it. Every node does that once by itself.
When to look afterwards, and what the looks of other nodes mean, is decided by the `ProbeSchedule`.
A worker that comes back is asked again for its identity, because another model may have been
started on its port; so is one of which a prober says that another engine answers there now.
"""

import asyncio
import logging
from dataclasses import replace
from typing import Final

from smg_node.config.worker_url import PROVIDER
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.engine import Contract, Engine, ModelCard
from smg_node.fleet.health.circuit_breaker import State
from smg_node.fleet.health.peer_verdicts import NoPeers
from smg_node.fleet.health.probe_counters import ReconnectBackoff
from smg_node.fleet.health.probe_schedule import NEVER, ProbeOptions, ProbeSchedule
from smg_node.fleet.models.model_options import labels_of
from smg_node.fleet.models.served_model import AnyModel, ServedModel
from smg_node.fleet.workers.engine_identity import lasting, mark_of
from smg_node.fleet.workers.engine_looks import close_engine, seen_at, seen_in
from smg_node.fleet.workers.engine_subscriptions import EngineSubscriptions
from smg_node.fleet.workers.lifecycle_context import LifecycleContext
from smg_node.fleet.workers.worker import Status, Worker
from smg_node.fleet.workers.worker_roles import misfit

CARD_TIMEOUT_S: Final = 5.0
TOKENIZER_TIMEOUT_S: Final = 60.0
CONFLICT_RETRY_S: Final = 10.0
UNPROBED_S: Final = 3_600.0
"""A model at a vendor is looked at so seldom, which costs no call."""
_FIRST_LOOKS_APART_S: Final = 0.1
"""Good looks at a worker that is not up yet follow each other quickly: its start is over."""
_LOOKS_LASTING: Final = 3
"""A verdict outlives two looks that did not come."""

_OPEN_MARK: Final = "!"
"""At the end of the mark of a worker that is up: the breaker of the node that says so is open."""

_log = logging.getLogger("smg_node.fleet")


class WorkerLifecycle:
    """Lifecycle of one worker, the only writer of its status."""

    def __init__(self, worker: Worker, ground: LifecycleContext) -> None:
        # A model at a vendor is not probed, so peers have nothing to say of it.
        self._outlook = NoPeers() if worker.url.scheme == PROVIDER else ground.outlook
        self._worker = worker
        self._ground = ground
        me, options = self._outlook.me, self._probing()
        self.vigil = ProbeSchedule(me, options, now_s=_now_s(), rng=ground.rng)
        self._heard = False
        self._news: object = None
        self._marks: tuple[str, ...] = ()
        self._said_open = False
        """Whether the others were told that the breaker is open."""
        self._doubted = False
        """Whether somebody has waited for the worker since it was last tried."""
        self._patience = ReconnectBackoff()
        self._listener: EngineSubscriptions | None = None
        self.hear()

    def hear(self) -> None:
        """Take in what other nodes say of the worker, and which nodes probe it."""
        worker, vigil, outlook = self._worker, self.vigil, self._outlook
        sights, probers = outlook.sights(worker.id), outlook.probers(worker.id)
        news = ([(sight.node, sight.up, sight.reason) for sight in sights], list(probers))
        if news == self._news:
            return
        self._news, was_on_duty = news, vigil.on_duty
        vigil.hear(sights, probers, _now_s())
        if was_on_duty and not vigil.on_duty:
            outlook.fall_silent(worker.id)
        self.listen()
        peers = [sight for sight in sights if sight.node != outlook.me]
        if any(sight.up and sight.reason.endswith(_OPEN_MARK) for sight in peers):
            worker.breaker.hint(_now_s())
        self._compare_marks()
        self._heard = True
        worker.wake.set()

    def turned(self) -> None:
        """Take in that the worker's breaker turned: it may want a probe, and the peers a hint."""
        worker = self._worker
        shut = worker.breaker.state(_now_s()) is State.CLOSED
        if shut is self._said_open and self.vigil.up and worker.card is not None:
            self._tell(up=True, reason=mark_of(worker.card))
        worker.wake.set()

    def listen(self) -> None:
        """Follow what the engine says by itself if that is this node's part, by the options as they are now."""
        if self._listener is not None:
            self._listener.turn(on_duty=self.vigil.on_duty)

    def _probing(self) -> ProbeOptions:
        options = self._ground.options.vigil()
        vendors = self._worker.url.scheme == PROVIDER
        return replace(options, interval_s=UNPROBED_S) if vendors else options

    def _compare_marks(self) -> None:
        """Probe if a prober says that another engine answers there; once for each mark."""
        worker = self._worker
        if worker.card is None:
            return
        sights = self._outlook.sights(worker.id)
        marks = tuple(sight.reason.removesuffix(_OPEN_MARK) for sight in sights if sight.up)
        if marks != self._marks and any(mark and mark != mark_of(worker.card) for mark in marks):
            self.vigil.doubt(_now_s())
        self._marks = marks

    def retune(self) -> None:
        """Take the fleet's options as they are now."""
        self.vigil.retune(self._probing(), _now_s())
        self._worker.wake.set()

    async def run(self) -> None:
        """Manage the worker until cancelled."""
        worker = self._worker
        while True:
            await self._until_useful()
            pause_s = self._patience.pause_s(self._ground.options.retry_s, _now_s())
            try:
                await self._bring_up()
                await self._listen_and_watch()
            except SmgError as error:
                if error.kind is ErrorKind.CONFLICT:
                    pause_s = max(pause_s, CONFLICT_RETRY_S)
                self._down(error.message, failed=error.kind is ErrorKind.CONFLICT)
            except Exception as error:
                # A door: whatever one engine provokes, the others must go on being tended.
                _log.exception("tending worker %s failed", worker.url.endpoint)
                self._down(f"internal error: {type(error).__name__}", failed=True)
            self.vigil.tally.restart()
            await self._rest(pause_s * (0.9 + 0.2 * self._ground.rng.random()))

    # ── Waiting ──────────────────────────────────────────────────────────────

    async def _until_useful(self) -> None:
        """Return when a call to the worker makes sense: not while all probers say that it is
        down.
        """
        while self.vigil.waits:
            self._down(self._hearsay(), failed=False)
            await self._wait(NEVER)

    async def _rest(self, pause_s: float) -> None:
        """Return after `pause_s`; sooner if other nodes have news, or a request waits."""
        began_s = _now_s()
        self._heard = self._doubted = False
        while not self._heard:
            wanted_s = min(pause_s, self._ground.options.retry_s) if self._doubted else pause_s
            if _now_s() >= began_s + wanted_s:
                return
            await self._wait(began_s + wanted_s)

    async def _wait(self, until_s: float) -> None:
        """Return at `until_s`, sooner if woken; pass doubts on."""
        worker = self._worker
        if not worker.wake.is_set():
            try:
                async with asyncio.timeout_at(None if until_s == NEVER else until_s):
                    await worker.wake.wait()
            except TimeoutError:
                return
        worker.wake.clear()
        if worker.suspected:
            worker.suspected = False
            self._doubted = True
            self.vigil.doubt(_now_s())

    def _hearsay(self) -> str:
        sights = self._outlook.sights(self._worker.id)
        told = [f"{sight.node}: {sight.reason}" for sight in sights if not sight.up]
        return "; ".join(told[:3]) or "no prober says that it is up"

    # ── Bringing up ──────────────────────────────────────────────────────────

    async def _bring_up(self) -> None:
        """Return when the worker is registered and ready."""
        worker, ground = self._worker, self._ground
        if worker.declared.trouble:
            raise SmgError(ErrorKind.CONFLICT, worker.declared.trouble)
        try:
            engine = await self._opened()
            await self._until_up(engine)
            card = await engine.card(CARD_TIMEOUT_S)
        except SmgError as error:
            self._looked(good=False, reason=error.message)
            raise
        self._tell(up=True, reason=mark_of(card))
        if trouble := misfit(worker.url, card):
            raise SmgError(ErrorKind.CONFLICT, trouble)
        await ground.claims.check_free(worker, card)
        model, card = await self._adopted(engine, card)
        await ground.claims.claim(worker, card)
        worker.serve(model)
        worker.card = card
        worker.load.sized(card.running_max)
        worker.load.ranked(card.ranks, first=ground.rng.getrandbits(16))
        worker.load.renewed(_now_s())
        worker.encoded = None
        worker.breaker.reset()
        worker.status, worker.reason = Status.READY, ""
        self._patience.found()
        self._compare_marks()
        _log.info("worker %s is ready: %s", worker.url.endpoint, model.name)
        ground.changed()

    async def _opened(self) -> Engine:
        worker, ground = self._worker, self._ground
        if worker.engine is None:
            worker.engine = await ground.open_engine(worker.url, worker.declared.api_key)
        if ground.limits_s is not None:
            first_event_s, stall_s = ground.limits_s
            worker.engine.retune(first_event_s=first_event_s, stall_s=stall_s)
        return worker.engine

    async def _until_up(self, engine: Engine) -> None:
        while not self.vigil.tally.up:
            trouble = await seen_at(engine, self._ground.options.probe_timeout_s)
            if trouble:
                if not self._worker.inflight:
                    # Another contract may answer here next, so it is asked from the beginning.
                    await close_engine(self._worker)
                raise SmgError(ErrorKind.UPSTREAM_FAILED, trouble)
            if not self.vigil.looked(_now_s(), good=True):
                await asyncio.sleep(_FIRST_LOOKS_APART_S)

    async def _adopted(self, engine: Engine, card: ModelCard) -> tuple[AnyModel, ModelCard]:
        """Return what it serves, and its card with what its files say of pictures."""
        if card.contract is Contract.OPENAI:
            return self._ground.models.relay(card.model), card
        return await self._model_of(engine, card)

    async def _model_of(self, engine: Engine, card: ModelCard) -> tuple[ServedModel, ModelCard]:
        worker, models, cache = self._worker, self._ground.models, self._ground.cache
        name = worker.url.model or card.model
        if not name:
            raise SmgError(
                ErrorKind.CONFLICT, "the engine names no model; add ?model=NAME to its URL"
            )
        path = models.configured_path(name)
        if path is not None:
            bundle = await models.configured_bundle(path)
        else:
            source = f"{card.contract.value} {card.model_path or name}"
            try:
                bundle = await engine.tokenizer(TOKENIZER_TIMEOUT_S)
            except SmgError as error:
                kept = await asyncio.to_thread(cache.last, source)
                if kept is None:
                    raise SmgError(
                        error.kind,
                        f"no tokenizer from the engine ({error.message}); name a folder with "
                        f"models.{name}.tokenizer",
                    ) from error
                _log.warning("%s: using the cached tokenizer: %s", worker.url.endpoint, error)
                bundle = kept
            else:
                await asyncio.to_thread(cache.keep, bundle, source=source)
        alias = name.rstrip("/").rpartition("/")[2] if name.startswith("/") else None
        model = await models.adopt(
            name,
            bundle,
            in_use=lambda: self._ground.in_use(worker, name),
            alias=alias,
            labels=labels_of(card),
        )
        return model, model.note(card, bundle)

    # ── Watching ─────────────────────────────────────────────────────────────

    async def _listen_and_watch(self) -> None:
        """Return when the worker is down, or is no longer what it was; it is listened to until then."""
        engine = self._worker.engine
        assert engine is not None
        self._listener = listener = EngineSubscriptions(
            self._worker, engine, self._ground.listening
        )
        try:
            listener.begin(self._ground.spawn, on_duty=self.vigil.on_duty)
            await self._watch()
        finally:
            self._listener = None
            self._ground.claims.release(self._worker)
            await listener.end()

    async def _watch(self) -> None:
        """Return when the worker is down, or is no longer what it was. Its breaker may want a look out of turn."""
        engine, vigil, breaker = self._worker.engine, self.vigil, self._worker.breaker
        assert engine is not None
        was_away = False
        while True:
            await self._wait(min(vigil.due_s, breaker.look_s(_now_s())))
            self._check_model()
            self._ground.claims.check(self._worker)
            if not vigil.up:
                self._down(self._hearsay(), failed=False)
                return
            now_s = _now_s()
            if now_s < min(vigil.due_s, breaker.look_s(now_s)):
                continue
            trouble = await seen_at(engine, self._ground.options.probe_timeout_s)
            if not trouble:
                try:
                    same = await self._looks_the_same(engine, was_away=was_away)
                except SmgError as error:
                    same, trouble = True, seen_in(error)
                if not same:
                    self._tell(up=False, reason="came back as another engine")
                    self._down("came back as another engine", failed=False)
                    return
            fine = not trouble
            breaker.looked(_now_s(), good=fine)
            was_away = not fine
            self._looked(good=fine, reason=trouble)
            if not vigil.up:
                self._down(trouble, failed=False)
                return

    def _check_model(self) -> None:
        """Raise if another process of this node found that the model's files cannot be read."""
        model = self._worker.model
        trouble = model.trouble() if model is not None else None
        if trouble is not None:
            raise trouble

    async def _looks_the_same(self, engine: Engine, *, was_away: bool) -> bool:
        """Whether it is still the engine that was registered; SmgError if it does not say.

        A restart may be over before any probe, and a model's ids mean nothing to another one. Its
        tokenizer is fetched again only where there was time for a restart that was seen.
        """
        worker = self._worker
        assert worker.card is not None
        try:
            card = await engine.card(CARD_TIMEOUT_S)
            if lasting(card) != lasting(worker.card):
                return False
            if not was_away:
                return True
            model, card = await self._adopted(engine, card)
            return model is worker.serves and card.media == worker.card.media
        except SmgError as error:
            if error.kind is ErrorKind.CONFLICT:
                return False
            raise

    def _looked(self, *, good: bool, reason: str) -> None:
        """Take in a probe's outcome, and share the verdict."""
        vigil, card = self.vigil, self._worker.card
        vigil.looked(_now_s(), good=good)
        up = vigil.tally.up
        self._tell(up=up, reason=mark_of(card) if up and card is not None else reason)

    def _tell(self, *, up: bool, reason: str) -> None:
        if self.vigil.on_duty:
            self._said_open = up and self._worker.breaker.state(_now_s()) is not State.CLOSED
            if self._said_open:
                reason += _OPEN_MARK
            lasts_s = _LOOKS_LASTING * self._ground.options.probe_interval_s
            self._outlook.tell(self._worker.id, up=up, reason=reason, lasts_s=lasts_s)

    def _down(self, reason: str, *, failed: bool) -> None:
        worker = self._worker
        status = Status.FAILED if failed else Status.NOT_READY
        if worker.serves is None and not failed:
            status = Status.PENDING
        if worker.reason != reason:
            _log.warning("worker %s is %s: %s", worker.url.endpoint, status.value, reason)
        changed = (worker.status, worker.reason) != (status, reason)
        worker.status, worker.reason = status, reason
        if changed:
            self._ground.changed()


def _now_s() -> float:
    return asyncio.get_running_loop().time()
