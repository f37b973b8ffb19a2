"""Request intake: applies faults, rejects invalid requests, then plans the answer and starts it."""

from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from smg_chaos.engine.media.media_checks import Takes
from smg_chaos.engine.media.media_intake import MediaIntake
from smg_chaos.engine.media.vision_models import MODELS
from smg_chaos.engine.pairs.legs import Leg, Side
from smg_chaos.engine.protocol.faults import Fault, Faults
from smg_chaos.engine.protocol.generate_request import Asked
from smg_chaos.engine.protocol.prompt_ids import Greatest
from smg_chaos.engine.protocol.response_writer import Writer
from smg_chaos.engine.protocol.rpc_call import GONE, Call, Code, End, How, refused, unary
from smg_chaos.engine.protocol.servicer_behaviours import Bad, Manners, Twin
from smg_chaos.engine.scripts.bundle import Bundle
from smg_chaos.engine.scripts.scripts import Random, Script, answer_to
from smg_chaos.engine.settings import EngineSettings
from smg_chaos.engine.simulator.answer_end import allowed, plan
from smg_chaos.engine.simulator.call_ledger import Account
from smg_chaos.engine.simulator.choice import Choice
from smg_chaos.engine.simulator.engine_counters import Tally
from smg_chaos.engine.simulator.generation import Generation, GenerationRank
from smg_chaos.engine.simulator.pair_roles import Pairs
from smg_chaos.engine.simulator.request_checks import Verdict, judge

ENGINE_DEAD: Final = End(Code.INTERNAL, "the engine is dead")
# What a shell reports for a process that ended by a segmentation fault: the engine that segfaults on
# an unknown id is the one that survives an empty prompt.
_SEGMENTATION_FAULT: Final = 139
# Faults that stop an answer in the middle; the lies change what is said.
_CUTS: Final = frozenset({"hang", "stall", "error", "reset", "close", "die"})
_LIES: Final = frozenset({"bad-ids", "wrong-counts", "no-complete", "double-complete"})
_SEEDS: Final = 64  # different answers of a random script to requests without a seed


class ReceivingEngine(Protocol):
    """An engine, as far as requests that come in are concerned."""

    settings: EngineSettings
    bundle: Bundle
    script: Script
    manners: Manners
    vocabulary: int
    serving: bool
    down: bool
    dead: bool
    died: int | None
    tally: Tally
    faults: Faults
    account: Account | None
    pairs: Pairs
    ranks: list[GenerationRank]
    writer: Writer

    def wall_s(self, now_s: float) -> float:
        """Return the wall-clock time of a moment, in seconds since the epoch."""
        ...

    def at(self, when_s: float, do: Callable[[float], None]) -> None:
        """Do something at a moment."""
        ...

    def turn(self) -> GenerationRank:
        """Return the rank whose turn it is."""
        ...

    def running_as(self, request_id: str) -> list[Generation]:
        """Return the calls that run under an id, oldest first."""
        ...

    def register(self, call: Generation) -> None:
        """Remember a call by its id."""
        ...

    def mix(self, call: Generation, first: Generation) -> None:
        """Let the newer call of two with one id get everything."""
        ...

    def wedge(self, call: Generation) -> None:
        """Let nobody advance until this call's caller gives up."""
        ...

    def start(self, call: Generation, now_s: float) -> None:
        """Queue a call's choices up."""
        ...

    def die(self, code: int) -> None:
        """End the process."""
        ...

    def kill(self, now_s: float) -> None:
        """Kill the engine behind the servicer."""
        ...


def end_of(fault: Fault) -> End | None:
    """Return how a fault ends a call, or None if it does not."""
    message = f"fault {fault.name}"
    if fault.name in ("error", "refuse"):
        return End(fault.status(), message)
    if fault.name == "reset":
        return End(Code.INTERNAL, message, How.RESET)
    if fault.name == "close":
        return End(Code.UNAVAILABLE, message, How.CLOSE)
    return None


class Reception:
    """Checks each request, and starts those that are valid."""

    def __init__(self, engine: ReceivingEngine) -> None:
        self._engine = engine
        self._greatest = Greatest()
        settings = engine.settings
        self._media = MediaIntake(
            _takes(settings, engine.bundle), trusting=settings.media_trusting, role=settings.role
        )
        self._noise = Random(engine.bundle.size, frozenset(engine.bundle.eos_ids))

    def submit(self, asked: Asked, now_s: float) -> Call:
        """Accept a request; the call it returns may have ended already."""
        engine = self._engine
        if engine.account is not None:
            engine.account.came(asked, engine.wall_s(now_s))
        call = self._submitted(asked, now_s)
        if engine.account is not None and call not in engine.running_as(asked.request_id):
            engine.account.ended(asked, 0, engine.wall_s(now_s))  # it was turned away
        return call

    def _submitted(self, asked: Asked, now_s: float) -> Call:
        engine = self._engine
        barred = self._barred()
        if barred is not None:
            return barred
        fault = engine.faults.on_request(engine.tally.requests, asked.ids)
        if fault is not None:
            ended = self._met(fault)
            if ended is not None:
                return ended
        verdict = judge(
            asked,
            engine.manners,
            vocabulary=engine.vocabulary,
            context=engine.settings.context,
            greatest=self._greatest,
        )
        ended = self._judged(verdict, asked, now_s)
        if ended is not None:
            return ended
        ended = self._looked(asked, now_s) if asked.media else None
        if ended is not None:
            return ended
        leg = engine.pairs.met(asked, now_s)
        if isinstance(leg, Call):
            return leg
        home = self._home(asked, leg)
        if isinstance(home, Call):
            return home
        if home.scheduler.full():
            return self._refuse(Code.RESOURCE_EXHAUSTED, "too many requests wait")
        call = self._registered(asked, home, fault, verdict.bad)
        if leg is not None:
            engine.pairs.joined(call, leg)
        self._started(call, verdict.bad, now_s)
        return call

    def encode(self, asked: Asked, now_s: float) -> Call:
        """Accept one picture that is to be encoded for another engine, which waits in `asked.room`."""
        engine = self._engine
        barred = self._barred()
        if barred is not None:
            return barred
        fault = engine.faults.on_request(engine.tally.requests, asked.ids)
        if fault is not None:
            ended = self._met(fault)
            if ended is not None:
                return ended
            if fault.name == "hang":
                engine.faults.hit(fault)
                return Call()
        ended = self._looked(asked, now_s)
        if ended is not None:
            return ended
        assert asked.room is not None, "it was read"
        (picture,), tokens = asked.pictures, len(asked.ids)
        if not engine.pairs.pictures.accepted(asked.room, picture, tokens, now_s):
            return refused(Code.INTERNAL, f"room {asked.room} is in use")
        return unary(b"\x08\x01")

    def _barred(self) -> Call | None:
        """Count a request in; return its end at an engine that takes none, or None."""
        engine = self._engine
        engine.tally.requests += 1
        if engine.died is not None or engine.down:
            return Call((), GONE)
        if engine.dead:
            return Call((), ENGINE_DEAD)
        if not engine.serving and engine.faults.named("slow-start") is not None:
            return self._refuse(Code.UNAVAILABLE, "the engine is starting")
        return None

    def _looked(self, asked: Asked, now_s: float) -> Call | None:
        """Look at a request's pictures; return its end, or None if it goes on."""
        engine, looked = self._engine, self._media.look(asked)
        engine.tally.media_mistakes += looked.mistakes
        engine.tally.shared += looked.shared
        engine.tally.pictures += len(asked.pictures)
        if looked.stops:
            engine.kill(now_s)
            return Call((), ENGINE_DEAD)
        if looked.code is not None:
            return self._refuse(looked.code, looked.message)
        return None

    def _home(self, asked: Asked, leg: Leg | None) -> GenerationRank | Call:
        """Return the rank that works on a request: the one it asks for, its room's, or the next one."""
        engine = self._engine
        count, wanted = len(engine.ranks), asked.rank
        twins = engine.running_as(asked.request_id)
        if twins and engine.manners.twin is Twin.MIXED:
            return twins[-1].home
        if wanted is not None and not 0 <= wanted < count:
            message = f"data_parallel_rank {wanted} is out of range [0, {count})."
            return self._refuse(Code.INVALID_ARGUMENT, message)
        if leg is not None and leg.side is Side.PREFILL and asked.room:
            implied = asked.room % count
            if wanted is None:
                return engine.ranks[implied]
            if wanted != implied and engine.manners.room_rank:
                message = f"bootstrap_room {asked.room} implies dp_rank {implied}, not {wanted}"
                return self._refuse(Code.INTERNAL, message)
        return engine.turn() if wanted is None else engine.ranks[wanted]

    def _refuse(self, code: Code, message: str) -> Call:
        self._engine.tally.refused += 1
        return refused(code, message)

    def _met(self, fault: Fault) -> Call | None:
        """Return the end of a request that a fault hits before anything else, or None."""
        engine, end = self._engine, end_of(fault)
        if fault.name == "die" and not fault.number("after"):
            engine.faults.hit(fault)
            engine.die(fault.number("code"))
            return Call((), GONE)
        if end is not None and not fault.number("after"):
            engine.faults.hit(fault)
            engine.tally.cut += 1
            return Call((), end)
        return None

    def _judged(self, verdict: Verdict, asked: Asked, now_s: float) -> Call | None:
        """Return the end of a request that no engine should have been sent, or None."""
        engine, bad = self._engine, verdict.bad
        if bad is Bad.REFUSED:
            return self._refuse(Code.INVALID_ARGUMENT, verdict.message)
        if bad is Bad.EXITS:
            engine.die(_SEGMENTATION_FAULT if engine.manners.no_ids is Bad.WEDGES else 1)
            return Call((), GONE)
        if bad is Bad.KILLS:
            engine.kill(now_s)
            return Call((), ENGINE_DEAD)
        if engine.manners.twin is Twin.REFUSED and engine.running_as(asked.request_id):
            return self._refuse(Code.ALREADY_EXISTS, f"request {asked.request_id} exists")
        return None

    def _registered(
        self, asked: Asked, home: GenerationRank, fault: Fault | None, bad: Bad
    ) -> Generation:
        engine = self._engine
        if asked.text is not None:
            asked.ids = engine.bundle.encode(asked.text)
        group = max(1, engine.settings.coalesce or 1)
        call = Generation(asked, engine.writer, engine.manners, home, group=group)
        call.fault = fault
        twins = engine.running_as(asked.request_id)
        engine.register(call)
        if bad is Bad.WEDGES:
            return call
        script = self._noise if bad is Bad.GARBAGE else engine.script
        self._plan(call, script)
        call.plan_again = partial(self._plan_again, call, script)
        if twins and engine.manners.twin is Twin.MIXED:
            engine.mix(call, twins[-1])
        return call

    def _started(self, call: Generation, bad: Bad, now_s: float) -> None:
        engine, fault = self._engine, call.fault
        if bad is Bad.WEDGES:
            engine.wedge(call)
            return
        if fault is not None and fault.name == "delay":
            engine.faults.hit(fault)
            engine.at(now_s + fault.seconds(), partial(engine.start, call))
        else:
            engine.start(call, now_s)

    def _plan_again(self, call: Generation, script: Script) -> None:
        call.choices.clear()
        self._plan(call, script)

    def _plan(self, call: Generation, script: Script) -> None:
        engine, asked, fault = self._engine, call.asked, call.fault
        seed = asked.seed if asked.seed is not None else engine.tally.requests % _SEEDS
        for index in range(asked.n if engine.manners.choices else 1):
            answer = answer_to(script, asked).answer(asked.ids, seed + engine.settings.seed, index)
            answer = allowed(asked, answer, engine.bundle)
            planned = plan(asked, answer, engine.manners, engine.bundle, engine.settings.context)
            choice = Choice(call, index, answer)
            choice.end_at, choice.ending = planned.end_at, planned.ending
            choice.trimmed, choice.hold_to = planned.trimmed, planned.hold_to
            if fault is not None and fault.name in _CUTS and fault.number("after") < choice.end_at:
                choice.end_at, choice.ending = fault.number("after"), None
                choice.trimmed = 0
            call.choices.append(choice)
        if fault is not None and fault.name in _LIES:
            engine.faults.hit(fault)


def _takes(settings: EngineSettings, bundle: Bundle) -> Takes | None:
    """Return what an engine takes of pictures; None for a model of text."""
    model, placeholder = MODELS.get(settings.vision), bundle.placeholder
    if model is None or placeholder is None:
        return None
    return Takes(
        model=model,
        placeholder=placeholder,
        normalizes=settings.normalizes(),
        items_max=settings.items_max(),
        tokens_max=settings.media_tokens_max,
        hashes=settings.contract in ("vllm", "tokenspeed"),
        schemes=frozenset({"http", "https", "data"} if settings.media_references else ()),
    )
