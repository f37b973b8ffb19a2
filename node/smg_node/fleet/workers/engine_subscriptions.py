"""Engine subscriptions: follows the KV events of a ready worker and its load, by events or by
polling.

Of each ready worker, while it is ready:

    KV events   followed by the nodes in charge of it; subscribed again 0.1 .. 30 s after a stream ended, from
                where it was; a hole, a loss or a cursor that is not served means: all over again, from 0.
                An engine that has no such RPC is not asked again until it was away
    loads       with those events; asked for every few seconds where nothing came for longer than the slowest
                heartbeat, less often while nothing is under way there

An engine that should speak and does not is looked at: one that says so itself (`load.stuck`), and one whose
stream fell quiet while calls of this node are open there. It gets no new work meanwhile.

There are at most two tasks a worker, in the fleet's group, between `begin` and `end`.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from smg_node.core.errors import SmgError
from smg_node.core.ports import Rng
from smg_node.engines.engine import Engine
from smg_node.engines.kv_events import CURSOR_CODE, LOST_CODE, KvBatch
from smg_node.engines.load import Load
from smg_node.engines.transport.grpc_status import UNREACHABLE_CODE
from smg_node.fleet.workers.worker import Sampled, Worker

PAUSE_FIRST_S: Final = 0.1
PAUSE_MAX_S: Final = 30.0
STEADY_S: Final = 10.0
"""A subscription that lasted so long was a good one: the next one follows at once."""
HEARTBEAT_MAX_S: Final = 6.0
"""Engines say how busy they are every second, every five while nothing changes; later than this is silence."""
LOADS_TIMEOUT_S: Final = 2.0
IDLE_INTERVAL_S: Final = 10.0
"""An engine with nothing under way is asked this often: what it says holds for 15 s."""
POLLS_A_SECOND_MAX: Final = 50.0
"""Each takes about 0.4 ms; with more workers than that allows, each of them is asked less often."""
TICK_S: Final = 1.0
MISTAKES_APART_S: Final = 60.0
"""A mistake that is made every second is told once a minute."""
RANKS_MAX: Final = 256
"""An engine that invents ranks must not fill memory."""

_log = logging.getLogger("smg_node.fleet")


class KvEventSink(Protocol):
    """Receiver of KV events. None of its methods waits or raises."""

    def start(self, worker: Worker) -> int:
        """Return from which sequence on to subscribe to a ready worker's events; 0 is all there is."""
        ...

    def batch(self, worker: Worker, batch: KvBatch, now_s: float) -> bool:
        """Take in a batch; return whether what is known is wrong now, and to be told all over again."""
        ...

    def lost(self, worker: Worker, code: str) -> None:
        """Take in that the engine cannot tell what came after `start`: a code of `kv_events`."""
        ...

    def closed(self, worker: Worker, now_s: float) -> None:
        """Take in that nothing is heard of that worker for now: unknown, not empty."""
        ...

    def relieved(self, worker: Worker) -> None:
        """Take in that other nodes follow that worker now, or none: what was learned of it here is
        of no use any more.
        """
        ...

    def gone(self, worker: Worker) -> None:
        """Forget a worker."""
        ...

    def tick(self, now_s: float) -> None:
        """Take in that another second has passed."""
        ...


class NullKvEventSink:
    """A receiver that ignores all events."""

    def start(self, worker: Worker) -> int:
        """Return 0."""
        return 0

    def batch(self, worker: Worker, batch: KvBatch, now_s: float) -> bool:
        """Return False."""
        return False

    def lost(self, worker: Worker, code: str) -> None:
        """Do nothing."""

    def closed(self, worker: Worker, now_s: float) -> None:
        """Do nothing."""

    def relieved(self, worker: Worker) -> None:
        """Do nothing."""

    def gone(self, worker: Worker) -> None:
        """Do nothing."""

    def tick(self, now_s: float) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class ListenOptions:
    """Whether events are followed, by the nodes in charge of a worker or by all. How often loads
    are asked for.
    """

    events: bool = True
    subscribers: Literal["probers", "all"] = "probers"
    load_interval_s: float = 2.0


@dataclass(slots=True)
class SubscriptionContext:
    """State that all subscriptions share, and what they count; `ended` is by reason, over all
    workers.
    """

    options: ListenOptions
    rng: Rng
    ear: KvEventSink = field(default_factory=NullKvEventSink)
    workers: int = 0
    """How many are listened to now."""
    batches: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    stumbles: int = 0
    """How often what hears the events could not take in that time passed."""
    _told_s: float = -MISTAKES_APART_S

    def tick(self, now_s: float) -> None:
        """Take in that another second has passed."""
        try:
            self.ear.tick(now_s)
        except Exception:
            # A door: what is known of caches saves time, and a mistake in it must not take the node down.
            self.stumbles += 1
            if now_s >= self._told_s + MISTAKES_APART_S:
                self._told_s = now_s
                _log.exception(
                    "keeping up what is known of caches failed (%d times so far)", self.stumbles
                )

    def interval_s(self, *, busy: bool) -> float:
        """Return how long to wait before asking one worker for its load again."""
        wanted_s = self.options.load_interval_s
        if not busy:
            wanted_s = max(wanted_s, min(5 * wanted_s, IDLE_INTERVAL_S))
        fair_s = self.workers / POLLS_A_SECOND_MAX
        return max(wanted_s, fair_s) * (0.9 + 0.2 * self.rng.random())

    def pause_s(self, failures: int) -> float:
        """Return how long to wait after so many subscriptions in a row that did not last."""
        most_s = min(PAUSE_MAX_S, PAUSE_FIRST_S * 2.0 ** min(failures, 16))
        return most_s * (0.5 + 0.5 * self.rng.random())


class EngineSubscriptions:
    """Subscriptions of one worker, from when it became ready until it is not."""

    def __init__(self, worker: Worker, engine: Engine, ground: SubscriptionContext) -> None:
        self._worker = worker
        self._engine = engine
        self._ground = ground
        self._on_duty = False
        self._unheard_of = False
        """Whether the engine has no such RPC."""
        self._turned = asyncio.Event()
        self._retuned = asyncio.Event()
        self._limit: asyncio.Timeout | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def begin(
        self,
        spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]],
        *,
        on_duty: bool,
    ) -> None:
        """Start; `spawn` starts a task of that name in the fleet's group."""
        self._on_duty = on_duty
        self._ground.workers += 1
        if self._worker.role == "encode":
            # It caches no prompt, and some of them end when they are asked what only others are asked.
            return
        abilities, name = self._engine.abilities, self._worker.url.endpoint
        if not abilities.kv_events:
            # It was away, perhaps to begin with an empty cache, and will never say so.
            self._ground.ear.gone(self._worker)
        else:
            self._tasks.append(spawn(self._follow(), f"follow {name}"))
        if abilities.loads:
            self._tasks.append(spawn(self._poll(), f"loads of {name}"))

    async def end(self) -> None:
        """Stop; nothing is heard of the worker after that."""
        self._ground.workers -= 1
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._worker.sampled.clear()
        note_quiet(self._worker, _now_s())

    def turn(self, *, on_duty: bool) -> None:
        """Take in whether this node is in charge of the worker, and the options as they are now."""
        self._on_duty = on_duty
        self._turned.set()
        self._retuned.set()
        if self._limit is not None and not self._limit.expired() and not self._wanted():
            self._limit.reschedule(_now_s())

    def _wanted(self) -> bool:
        options = self._ground.options
        mine = self._on_duty or options.subscribers == "all"
        return options.events and mine and not self._unheard_of

    # ── KV events ────────────────────────────────────────────────────────────

    async def _follow(self) -> None:
        """Keep a subscription open until cancelled."""
        failures = 0
        while True:
            while not self._wanted():
                self._ground.ear.relieved(self._worker)
                self._turned.clear()
                await self._turned.wait()
            began_s = _now_s()
            why = await self._subscribed()
            self._ground.ended[why] += 1
            failures = 0 if _now_s() - began_s >= STEADY_S else failures + 1
            if self._wanted():
                await asyncio.sleep(self._ground.pause_s(failures - 1 if failures else 0))

    async def _subscribed(self) -> str:
        """Listen until the subscription ends; return why it did."""
        worker, ear = self._worker, self._ground.ear
        try:
            async with asyncio.timeout(None) as self._limit:
                return await self._listen(ear.start(worker))
        except TimeoutError:
            return "relieved"
        except SmgError as error:
            return self._note_end(error)
        except Exception:
            # A door: whatever one engine says, its requests go on and so do all other workers.
            _log.exception("listening to worker %s failed", worker.url.endpoint)
            return "failed"
        finally:
            self._limit = None
            worker.following = False
            ear.closed(worker, _now_s())

    async def _listen(self, start: int) -> str:
        worker, ground = self._worker, self._ground
        async with aclosing(self._engine.kv_events(start)) as stream:
            async for batches in stream:
                now_s = _now_s()
                for batch in batches:
                    ground.batches += 1
                    worker.heard_s = now_s
                    if batch.load is not None:
                        self._sampled(batch.load, now_s, pushed=True)
                    if ground.ear.batch(worker, batch, now_s):
                        return "gap"
                    worker.following = True
        return "ended"

    def _note_end(self, error: SmgError) -> str:
        """Take in why a subscription was ended; return it in one word."""
        worker = self._worker
        if error.code in (CURSOR_CODE, LOST_CODE):
            self._ground.ear.lost(worker, error.code)
            return "cursor" if error.code == CURSOR_CODE else "lost"
        if error.status == 501:
            self._unheard_of = True
            self._ground.ear.gone(worker)
            _log.info("worker %s does not tell what it caches", worker.url.endpoint)
            return "unimplemented"
        if error.code == UNREACHABLE_CODE:
            worker.suspect()
            return "unreachable"
        return "failed"

    # ── Loads ────────────────────────────────────────────────────────────────

    async def _poll(self) -> None:
        """Ask how busy the engine is while it does not say so; return when it has no such RPC."""
        while True:
            if not self._pushes(_now_s()) and not await self._ask():
                return
            self._retuned.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pause_s()):
                    await self._retuned.wait()

    def _pause_s(self) -> float:
        """Return how long to wait before asking again; some engines are not to be asked as often as others."""
        interval_s = self._ground.interval_s(busy=self._busy())
        return max(interval_s, self._engine.abilities.loads_apart_s)

    async def _ask(self) -> bool:
        """Ask once; return whether to ask again."""
        try:
            loads = await self._engine.loads(LOADS_TIMEOUT_S)
        except SmgError as error:
            if error.code == UNREACHABLE_CODE and self._unheard_of:
                # It may come back as an engine that has that RPC.
                self._unheard_of = False
                self._turned.set()
            return error.status != 501
        except Exception:
            # A door, as above.
            _log.exception("asking worker %s for its load failed", self._worker.url.endpoint)
            return True
        now_s = _now_s()
        for load in loads:
            self._sampled(load, now_s, pushed=False)
        return True

    def _pushes(self, now_s: float) -> bool:
        return any(
            one.pushed and now_s - one.at_s <= HEARTBEAT_MAX_S
            for one in self._worker.sampled.values()
        )

    def _busy(self) -> bool:
        sampled = self._worker.sampled.values()
        return self._worker.load.inflight > 0 or any(
            one.load.running or one.load.waiting for one in sampled
        )

    def _sampled(self, load: Load, now_s: float, *, pushed: bool) -> None:
        worker = self._worker
        if load.rank not in worker.sampled and len(worker.sampled) >= RANKS_MAX:
            return
        worker.sampled[load.rank] = Sampled(load, now_s, pushed=pushed)
        was_stuck = worker.load.stuck
        worker.load.sample(load, now_s)
        if worker.load.stuck and not was_stuck:
            _log.warning("worker %s says nothing although it has work", worker.url.endpoint)
            worker.suspect()


def note_quiet(worker: Worker, now_s: float) -> None:
    """Notice that an engine which used to speak has fallen silent while calls of this node are open there."""
    quiet = (
        worker.following
        and worker.inflight > 0
        and now_s - worker.heard_s > HEARTBEAT_MAX_S
        and any(one.pushed for one in worker.sampled.values())
    )
    if quiet != worker.quiet:
        worker.quiet = quiet
        worker.load.stick(stuck=quiet)
    if quiet:
        worker.suspect()


def _now_s() -> float:
    return asyncio.get_running_loop().time()
