"""Encoded pictures: pictures that one engine encodes for another, handed over in rooms as TokenSpeed does. Pure.

The encoder accepts a picture with the number of a room and answers at once; the embedding is there when it has been
computed, and is kept for whoever asks for the room. The engine that works the prompt off is told host, port and room of
each picture, and starts when all of them have come. A room to which nothing comes ends the request: the encoder is not
there, has never heard of the room, or is gone.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, Generic, Protocol, TypeVar

from smg_chaos.engine.pairs.handover import Asking, Courier, Gone, Handed, Heard, Shelf, Thing
from smg_chaos.engine.protocol.generate_request import Asked
from smg_chaos.engine.settings import EngineSettings

INFO: Final = "encode_bootstrap_info"
"""The field that names the rooms."""
FAILED: Final = "EPD embedding receive failed or timed out"


class WaitingCall(Protocol):
    """A call, as far as encoded pictures are concerned."""

    asked: Asked
    received: bool
    """Whether its pictures have come."""


CallT = TypeVar("CallT", bound=WaitingCall)
EngineCallT = TypeVar("EngineCallT", bound=WaitingCall, contravariant=True)


class Counts(Protocol):
    """What is counted of pictures."""

    encoded: int
    received: int
    handed_over: int


class EncodingEngine(Protocol[EngineCallT]):
    """An engine, as far as encoded pictures are concerned."""

    @property
    def settings(self) -> EngineSettings:
        """Its settings."""
        ...

    @property
    def tally(self) -> Counts:
        """Its counters."""
        ...

    def at(self, when_s: float, do: Callable[[float], None]) -> None:
        """Do something at a moment."""
        ...

    def start(self, call: EngineCallT, now_s: float) -> None:
        """Queue a call's choices up, or wait for what it needs."""
        ...


class Pictures(Generic[CallT]):
    """Encoded pictures that an engine keeps for others, or waits for. `fail` ends a call that gets none."""

    def __init__(
        self,
        engine: EncodingEngine[CallT],
        shelf: Callable[[], Shelf],
        courier: Callable[[], Courier],
        fail: Callable[[CallT, str, float], None],
    ) -> None:
        self._engine = engine
        self._shelf = shelf
        self._courier = courier
        self._fail = fail
        self._jobs: dict[CallT, _Job] = {}

    # ── The encoder ─────────────────────────────────────────────────────────

    def accepted(self, room: int, picture: str, tokens: int, now_s: float) -> bool:
        """Begin to encode a picture for a room; False if the room has one."""
        key = _key(room)
        if key in self._shelf():
            return False
        rate = self._engine.settings.prefill_tokens_per_s
        ready_s = now_s + tokens / rate if rate else now_s
        handed = Handed(int(picture[:15], 16), tokens, 0, (picture,))
        self._engine.at(ready_s, partial(self._encoded, key, handed))
        return True

    def _encoded(self, key: str, handed: Handed, now_s: float) -> None:
        engine, shelf = self._engine, self._shelf()
        if key in shelf:
            return
        engine.tally.encoded += 1

        def taken(_now_s: float) -> None:
            engine.tally.handed_over += 1

        thing = Thing(handed, taken)
        engine.at(
            now_s + engine.settings.pair_wait_s,
            lambda at_s: shelf.drop(key, "nobody came in time", at_s, only=thing),
        )
        shelf.put(key, thing, now_s)

    # ── Who works the prompt off ────────────────────────────────────────────

    def waits(self, call: CallT, now_s: float) -> bool:
        """Return whether a call waits for pictures; it is started when they are there."""
        info = call.asked.media.get(INFO)
        if info is None or call.received:
            return False
        if call not in self._jobs:
            job = self._jobs[call] = _Job(len(info.items))
            until_s = now_s + self._engine.settings.pair_wait_s
            self._engine.at(until_s, partial(self._too_late, call))
            for one in info.items:
                heard: Heard = partial(self._heard, call, one.item_index)
                host, port = one.bootstrap_host, one.bootstrap_port
                asking = self._courier().ask(host, port, _key(one.bootstrap_room), heard, now_s)
                if self._jobs.get(call) is job:
                    job.asked.append(asking)
        return not call.received

    def _heard(
        self, call: CallT, index: int, asking: Asking, what: Handed | Gone, now_s: float
    ) -> None:
        job = self._jobs.get(call)
        if job is None:
            asking.withdraw(now_s)
        elif isinstance(what, Gone):
            self._fail(call, f"{FAILED}: {what.reason}", now_s)
        else:
            asking.took(now_s)
            job.pictures[index] = what.pictures[0]
            if len(job.pictures) == job.count:
                del self._jobs[call]
                call.received = True
                call.asked.pictures = [job.pictures[at] for at in sorted(job.pictures)]
                self._engine.tally.received += job.count
                self._engine.start(call, now_s)

    def _too_late(self, call: CallT, now_s: float) -> None:
        if call in self._jobs:
            self._fail(call, FAILED, now_s)

    def forget(self, call: CallT, now_s: float) -> None:
        """Withdraw the questions of a call that is over."""
        job = self._jobs.pop(call, None)
        for asking in () if job is None else job.asked:
            asking.withdraw(now_s)


class _Job:
    """Pictures that a call waits for."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.asked: list[Asking] = []
        self.pictures: dict[int, str] = {}


def _key(room: int) -> str:
    return f"picture {room}"
