"""Simulated engine: requests in, tokens out, on a clock that is an argument.

Nothing here sleeps, reads a clock or uses a socket. `advance(now_s)` does everything due until
then, in order, at the times it was due; `due_s()` returns when to call it again. A server (gRPC,
memory) submits requests, takes messages from the calls it was given, and cancels them.

Guaranteed, and checked by `check()`: a slot and its blocks are free as soon as their request ended,
was aborted or was cancelled.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from smg_chaos.engine.cache.blocks import Blocks
from smg_chaos.engine.cache.kv_publisher import Relay
from smg_chaos.engine.cache.load_gauge import Gauge
from smg_chaos.engine.cache.loads import Meter
from smg_chaos.engine.protocol.contracts import CONTRACTS
from smg_chaos.engine.protocol.faults import Fault, Faults
from smg_chaos.engine.protocol.generate_request import Asked
from smg_chaos.engine.protocol.response_writer import Ending, Writer
from smg_chaos.engine.protocol.rpc_call import GONE, Call, Code, End, How
from smg_chaos.engine.protocol.servicer_behaviours import Aborted
from smg_chaos.engine.scripts.bundle import Bundle
from smg_chaos.engine.scripts.scripts import Script
from smg_chaos.engine.settings import EngineSettings
from smg_chaos.engine.simulator.call_ledger import Account
from smg_chaos.engine.simulator.choice import Choice
from smg_chaos.engine.simulator.engine_counters import Tally
from smg_chaos.engine.simulator.generation import Generation, GenerationChoice, GenerationRank
from smg_chaos.engine.simulator.pair_roles import Pairs
from smg_chaos.engine.simulator.process_faults import arm
from smg_chaos.engine.simulator.rank import Rank
from smg_chaos.engine.simulator.request_intake import ENGINE_DEAD, Reception, end_of
from smg_chaos.engine.simulator.scheduler import Scheduler
from smg_chaos.engine.simulator.timers import Timers


class Engine:
    """One simulated engine.

    `now_s` is the moment it starts, on the monotonic clock every later call uses; `epoch_s` is that
    moment on the wall. `on_death` is called with the exit code when the process would end.
    """

    def __init__(
        self,
        settings: EngineSettings,
        bundle: Bundle,
        script: Script,
        faults: Iterable[Fault] = (),
        *,
        now_s: float,
        epoch_s: float = 0.0,
        on_death: Callable[[int], None] | None = None,
        account: Account | None = None,
    ) -> None:
        self.settings = settings
        self.bundle = bundle
        self.script = script
        self.manners = settings.manners()
        self.contract = CONTRACTS[settings.contract]
        self.model = settings.model
        self.vocabulary = settings.vocabulary
        self.started_s = now_s
        self.serving = True
        self.down = False
        """The process is gone for a moment: nothing is answered at all."""
        self.died: int | None = None
        self.dead = False
        self.tally = Tally()
        self.rng = random.Random(settings.seed)
        self.faults = Faults(faults, self.rng)
        self.tally.faults = self.faults.hits
        self.meters = [Meter() for _ in range(settings.ranks)]
        self._epoch_s = epoch_s - now_s
        self._on_death = on_death
        self.account = account
        self._timers = Timers()
        self._by_id: dict[str, list[Generation]] = {}
        self._wedged: dict[Generation, None] = {}
        self._not_before_s = now_s
        self._turn = -1
        self.pairs = Pairs(self)
        self.reception = Reception(self)
        self._build()
        arm(self, now_s)

    def _build(self) -> None:
        settings, manners = self.settings, self.manners
        self.ranks: list[GenerationRank] = [
            Rank(number, settings, manners, meter, self.rng, self._over)
            for number, meter in enumerate(self.meters)
        ]
        self.writer = Writer(self.contract, self.manners, vocabulary=self.vocabulary)
        self.gauge = Gauge(self)
        self.relay = Relay(self)

    def wall_s(self, now_s: float) -> float:
        """Return the wall-clock time of a moment, in seconds since the epoch."""
        return self._epoch_s + now_s

    @property
    def active(self) -> int:
        """How many calls of clients are in progress."""
        return sum(len(calls) for calls in self._by_id.values())

    @property
    def table(self) -> Blocks:
        """The blocks of its first rank, and of most engines all of them."""
        return self.ranks[0].table

    @property
    def idle(self) -> bool:
        """Whether nothing runs or waits, or is kept for others."""
        return not any(rank.scheduler.busy for rank in self.ranks)

    @property
    def scheduler(self) -> Scheduler[Generation]:
        """The scheduler of its first rank, and of most engines the only one."""
        return self.ranks[0].scheduler

    def turn(self) -> GenerationRank:
        """Return the rank whose turn it is, where a request names none."""
        self._turn += 1
        return self.ranks[self._turn % len(self.ranks)]

    # ── Time ────────────────────────────────────────────────────────────────

    def at(self, when_s: float, do: Callable[[float], None]) -> None:
        """Schedule an action for a moment."""
        self._timers.add(when_s, do)

    def due_s(self) -> float | None:
        """Return when `advance` will have something to do, or None."""
        timer_s, (_, step_s) = self._timers.due_s(), self._next_step()
        if step_s is None:
            return timer_s
        return step_s if timer_s is None else min(step_s, timer_s)

    def _next_step(self) -> tuple[GenerationRank, float | None]:
        """Return the rank that steps next, and when."""
        next_rank, due_s = self.ranks[0], None
        if not self._wedged and not self.dead:
            for rank in self.ranks:
                step_s = rank.pacer.due_s()
                if step_s is not None and (due_s is None or step_s < due_s):
                    next_rank, due_s = rank, step_s
        return next_rank, due_s if due_s is None else max(due_s, self._not_before_s)

    def advance(self, now_s: float) -> None:
        """Do everything that is due until `now_s`."""
        while self.died is None:
            timer_s, (rank, step_s) = self._timers.due_s(), self._next_step()
            is_timer = timer_s is not None and (step_s is None or timer_s <= step_s)
            next_s = timer_s if is_timer else step_s
            if next_s is None or next_s > now_s:
                return
            self._timers.fire(next_s) if is_timer else self._step(rank, next_s)

    def _step(self, rank: GenerationRank, now_s: float) -> None:
        scheduler = rank.scheduler
        before = scheduler.made
        stirred: list[Generation] = []
        for choice in scheduler.step(now_s):
            call = choice.call
            if not call.stirred:
                call.stirred = True
                stirred.append(call)
        made = scheduler.made - before
        if made:
            self.tally.tokens += made
            rank.meter.made(made, now_s)
        for call in stirred:
            call.stirred = False
            call.bell(call)
        scheduler.admit(now_s)
        self.relay.publish(now_s)

    # ── Requests ────────────────────────────────────────────────────────────

    def submit(self, asked: Asked, now_s: float) -> Call:
        """Accept a request; the call it returns may have ended already."""
        return self.reception.submit(asked, now_s)

    def running_as(self, request_id: str) -> list[Generation]:
        """Return the calls in progress under an id, oldest first."""
        return list(self._by_id.get(request_id, ()))

    def register(self, call: Generation) -> None:
        """Register a call by its id; its cancellation frees what it holds."""
        call.release = self._release
        self._by_id.setdefault(call.asked.request_id, []).append(call)

    def wedge(self, call: Generation) -> None:
        """Stop all progress until this call is cancelled by its caller."""
        self._wedged[call] = None

    def mix(self, call: Generation, first: Generation) -> None:
        """Send everything of two calls with one id to the newer call; the older one never ends."""
        call.adopted = [*first.adopted, *first.choices]
        for choice in call.adopted:
            choice.call = call
        first.lost = True
        self._by_id[call.asked.request_id] = [call]

    def start(self, call: Generation, now_s: float) -> None:
        """Queue a call's choices."""
        if call.end is not None or self.died is not None or self.pairs.waits(call, now_s):
            return
        self.start_now(call, now_s)

    def start_now(self, call: Generation, now_s: float) -> None:
        """Queue a call's choices; it waits for no other engine, or not any more."""
        if len(call.choices) > 1 and self.manners.prefills_once:
            self.probe(call.asked.ids, partial(self._enqueue, call), now_s, call.home)
        else:
            self._enqueue(call, now_s)

    def _enqueue(self, call: Generation, now_s: float) -> None:
        if call.end is None and self.died is None:
            for choice in call.choices:
                if not choice.over:  # aborted while the prompt was being computed
                    call.home.scheduler.add(choice, now_s)

    def probe(
        self,
        ids: Sequence[int],
        then: Callable[[float], None],
        now_s: float,
        home: GenerationRank | None = None,
    ) -> Generation:
        """Run a prompt and one token through a scheduler for the engine itself, then `then`."""
        asked, home = Asked(ids=ids, max_tokens=1), home or self.ranks[0]
        call = Generation(asked, self.writer, self.manners, home, group=1)
        choice = Choice(call, 0, self.script.answer(ids, 0, 0))
        choice.end_at, choice.ending = 1, Ending("length")
        call.choices.append(choice)
        call.then = then
        call.release = self._release
        home.scheduler.add(choice, now_s)
        return call

    # ── Ends ────────────────────────────────────────────────────────────────

    def _over(self, choice: GenerationChoice, now_s: float) -> None:
        call = choice.call
        fault = call.fault
        if fault is not None and choice.ending is None:
            self._cut(call, fault, now_s)
            return
        if self.pairs.keeps(choice, now_s):
            return
        call.home.scheduler.leave(choice, now_s)
        self.finished(call, now_s)

    def finished(self, call: Generation, now_s: float) -> None:
        """Deregister and complete a call if all its choices are over."""
        if call.release is None or not all(one.over for one in call.choices):
            return
        self._forget(call, now_s)
        call.release = None
        if call.then is not None:
            call.then(now_s)
        elif not call.aborting:
            self.tally.finished += 1

    def _cut(self, call: Generation, fault: Fault, now_s: float) -> None:
        self.faults.hit(fault)
        if fault.name in ("stall", "hang"):
            return  # it keeps its slot and is never heard of again
        self.tally.cut += 1
        if fault.name == "die":
            for message in call.take():
                call.say(message)  # what was printed before the end may still arrive
            self.die(fault.number("code"))
            return
        call.verdict = end_of(fault)
        self.give_up(call, now_s)

    def give_up(self, call: Generation, now_s: float) -> None:
        """Free everything of a call whose end is known."""
        call.release = None
        self._take_back(call, now_s)

    def _take_back(self, call: Generation, now_s: float) -> None:
        for choice in call.choices:
            call.home.scheduler.leave(choice, now_s)
        self._forget(call, now_s)

    def _forget(self, call: Generation, now_s: float) -> None:
        self.pairs.forget(call, now_s)
        calls = self._by_id.get(call.asked.request_id)
        if calls is not None and call in calls:
            calls.remove(call)
            if not calls:
                del self._by_id[call.asked.request_id]
            if self.account is not None:
                self.account.ended(call.asked, call.made, self.wall_s(now_s))

    def _release(self, call: Generation, now_s: float) -> None:
        """Free what a call holds that was cancelled or aborted."""
        if not call.aborting and call.end is not None and call.end.code is Code.CANCELLED:
            self.tally.cancelled += 1
        self._take_back(call, now_s)
        if self._wedged.pop(call, call) is None:
            self._not_before_s = max(self._not_before_s, now_s)
        call.home.scheduler.admit(now_s)

    def abort(self, request_id: str, now_s: float) -> bool:
        """Abort what runs under an id; return whether there was anything."""
        calls = list(self._by_id.get(request_id, ()))
        if not calls and self.manners.aborted is Aborted.RPC_ERROR:
            # n choices are n requests, `id-n0` and so on; any of them takes the call down.
            calls = list(self._by_id.get(request_id.rpartition("-n")[0], ()))
        for call in calls:
            if call.aborting:
                continue  # it is on its way out
            self.tally.aborted += 1
            if self.manners.aborted is Aborted.LATE_COMPLETE:
                self._abort_late(call, now_s)
            else:
                call.abort(now_s)
            call.bell(call)
        return bool(calls)

    def _abort_late(self, call: Generation, now_s: float) -> None:
        call.aborting = True
        for choice in call.choices:
            if choice.over:
                continue
            more = self.rng.randrange(self.manners.aborted_overrun + 1)
            choice.end_at = min(choice.end_at, choice.made + more)
            choice.ending = Ending(self.manners.abort_reason)
            choice.trimmed = 0
            if choice.made >= choice.end_at or not choice.blocks:
                self._over(choice, now_s)

    # ── Life ────────────────────────────────────────────────────────────────

    def come_back(self, *, model: str, vocabulary: int, now_s: float) -> None:
        """Drop all state and restart as a new process; `down` is the caller's to end."""
        self.down = True
        self._end_all(GONE, now_s)
        self.model, self.vocabulary = model, vocabulary
        self._build()

    def die(self, code: int) -> None:
        """End the process: every call is cut, and it does nothing any more."""
        if self.died is not None:
            return
        self.died = code
        self.serving = False
        self._end_all(GONE, self._not_before_s)
        if self._on_death is not None:
            self._on_death(code)

    def kill(self, now_s: float) -> None:
        """Kill the engine behind the servicer: the servicer keeps running and reports it."""
        self.dead = True
        self._end_all(ENGINE_DEAD, now_s)

    def _end_all(self, end: End, now_s: float) -> None:
        calls = [call for calls in self._by_id.values() for call in calls]
        calls += [choice.call for rank in self.ranks for choice in rank.scheduler.placed()]
        ended: list[Call] = list(self.relay.cut_all(end)) if end.how is How.CLOSE else []
        for call in dict.fromkeys(calls):
            if call.end is None:
                self.tally.cut += 1
            call.release = None
            call.cut(end)
            self._take_back(call, now_s)
            ended.append(call)
        self._wedged.clear()
        self.pairs.clear(now_s)
        for one in ended:
            one.bell(one)

    # ── Cache and checks ────────────────────────────────────────────────────

    def flush(self, now_s: float) -> bool:
        """Clear the cache; False, and nothing happens, while requests run."""
        if not self.idle:
            return False
        for rank in self.ranks:
            rank.table.clear()
        if self.manners.cleared_at_once:
            self.relay.publish(now_s)
        return True

    def check(self) -> None:
        """Assert that slots, blocks and names belong to calls in progress."""
        for rank in self.ranks:
            rank.scheduler.check()
        for calls in self._by_id.values():
            assert calls, "a name without a call"
            for call in calls:
                assert call.end is None or call.adopted, "a call that ended is still known"
