"""Request run at one node, from admission to its last event: the pipeline without sockets.

Rights, placement, call, chunks, events. A call that breaks is judged by `Attempts`
(`pipeline.retry`), and `pipeline.generation.continuation` says what is sent elsewhere. The grammar
lies over the whole stream.
"""

from collections.abc import Collection, Sequence
from functools import partial
from random import Random
from typing import Final, Protocol

from smg_chaos.engine.protocol.rpc_call import Code, End
from smg_chaos.simulate.base.virtual_clock import MS, SECOND
from smg_chaos.simulate.hosts.ports import HasAgenda
from smg_chaos.simulate.whole.client_request import Ending, Request
from smg_chaos.simulate.whole.counted_call import Hold
from smg_chaos.simulate.whole.engines import EngineCall
from smg_chaos.simulate.whole.letter_vocabulary import Letters
from smg_chaos.simulate.whole.request_judge import Judge, JudgedFront, JudgedTraffic
from smg_chaos.simulate.whole.traffic_setting import KEY, MODEL
from smg_node.admission.admission import KNOWN_WAIT_S, OWNER_WAIT_S, WAIT_S
from smg_node.admission.ports import Share
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.event_grammar import Grammar
from smg_node.core.generation.events import Begin, Delta, Event
from smg_node.core.generation.request import Sampling, TokenIds, token_ids
from smg_node.engines.chunk import Chunk
from smg_node.engines.contracts.vllm import VllmWire
from smg_node.engines.engine import EngineRequest
from smg_node.engines.grpc.stream_reader import StreamReader
from smg_node.engines.transport.grpc_status import closed_here, smg_error
from smg_node.engines.transport.transport import StatusCode, TransportError
from smg_node.parsers.reading.parser import Plain
from smg_node.pipeline.generation.call_plan import Leg
from smg_node.pipeline.generation.continuation import rest_of
from smg_node.pipeline.retry import STALLED_CODE, Attempts, Avoid, Broken, GiveUp
from smg_node.pipeline.stream.choice_stream import ChoiceStream
from smg_node.pipeline.stream.end_tokens import ends_of
from smg_node.pipeline.stream.generation_stream import GenerationStream
from smg_node.routing.retry_budget import RetryBudget, RetryOptions

PLACE_WAIT_US: Final = 5 * SECOND
"""So long a request waits for a worker."""
SILENCE_US: Final = 3 * SECOND
"""After so much of it an engine is taken to stand still."""
_DEADLINE_S: Final = 60.0
_AGAIN_US: Final = 10 * MS
_LOOK_US: Final = 50 * MS


def patience_us(share: Share) -> int:
    """Return how long a request waits for rights, as a node does (`admission.admission`)."""
    if share.pool < 0 and share.state in ("exact", "standing"):
        return int(OWNER_WAIT_S * SECOND)
    return int((KNOWN_WAIT_S if share.pool > 0 else WAIT_S) * SECOND)


class ErrandTraffic(JudgedTraffic, Protocol):
    """The requests of the world, as far as one of them is concerned."""

    judge: Judge
    moved: int

    def ended(self, request: Request, ending: Ending, why: str = "") -> None:
        """Take note of what became of a request."""
        ...


class ErrandFront(JudgedFront, Protocol):
    """The node at which a request is."""

    rng: Random
    options: RetryOptions
    budget: RetryBudget

    @property
    def traffic(self) -> ErrandTraffic:
        """The requests of the world."""
        ...

    @property
    def world(self) -> HasAgenda:
        """The world itself."""
        ...

    @property
    def now_s(self) -> float:
        """The node's monotonic clock."""
        ...

    def later(self, after_us: int, deed: object, *arguments: object) -> None:
        """Do something then, unless the life is over."""
        ...

    def place(self, ids: TokenIds, avoid: Avoid) -> Hold | None:
        """Choose a worker and count a call in; None if there is none to be had now."""
        ...

    def forget(self, request: Request) -> None:
        """Have no more of a request."""
        ...


class Errand:
    """One request, until `over`."""

    def __init__(self, front: ErrandFront, request: Request) -> None:
        self._front = front
        self.request = request
        self._since_us = front.world.agenda.now_us
        self._tokenizer = tokenizer = Letters()
        self._wire = VllmWire()
        ids = token_ids(list(request.prompt.encode()))
        sampling = Sampling(max_tokens=request.tokens, temperature=0.0, ignore_eos=True)
        stream = ChoiceStream(
            0,
            sampling=sampling,
            ends=ends_of(sampling, tokenizer, ()),
            tokenizer=tokenizer,
            detokenizer=tokenizer.detokenizer(
                prompt_tail=(), skip_special_tokens=True, spaces_between_special_tokens=True
            ),
            parser=Plain(),
        )
        begin = Begin(f"{request.number:032x}", MODEL, 0, len(ids))
        self._story = GenerationStream(begin, [stream], answers_per_prompt=1, tokenizer=tokenizer)
        self._grammar = Grammar(1)
        self._leg = Leg(first=0, count=1, ids=ids, sampling=sampling)
        self._attempts = Attempts(front.options, front.budget)
        self._reader: StreamReader | None = None
        self._hold: Hold | None = None
        self._call: EngineCall | None = None
        self._calls = 0
        self._heard_us = 0
        self._said = False
        self.over = False

    @property
    def _now_us(self) -> int:
        return self._front.world.agenda.now_us

    # ── Admission ────────────────────────────────────────────────────────────

    def begin(self) -> None:
        """Ask for a right, and wait a moment for one."""
        if self.over:
            return
        teller = self._front.node.teller
        assert teller is not None
        share = teller.share(KEY)
        if share is None:
            self._fail("limited", ErrorKind.RATE_LIMITED, "no rights")
            return
        if share.left >= 1:
            share.left -= 1
            share.spent += 1
            share.offered += 1
            share.wanted = 0
            share.wants_more = share.wants_more or share.left < share.low
            teller.charge(share, 1).offered += 1
            self._front.budget.asked(self._front.now_s)
            self._since_us = self._now_us
            self._place()
        elif share.pool == 0 or self._now_us - self._since_us >= patience_us(share):
            share.wanted = 0
            share.offered += 1
            self._fail("limited", ErrorKind.RATE_LIMITED, f"{share.state}, {share.left} left")
        else:
            teller.want(share, 1)
            self._front.later(_AGAIN_US, self.begin)

    # ── Calls ────────────────────────────────────────────────────────────────

    def _place(self) -> None:
        if self.over:
            return
        front = self._front
        self._hold = hold = front.place(self._leg.ids, self._attempts.avoid)
        if hold is None:
            if self._now_us - self._since_us >= PLACE_WAIT_US:
                front.traffic.judge.nobody(front, self.request)
                self._fail("failed", ErrorKind.OVERLOADED, "no worker")
            else:
                # Those of `gone` are waited for, and called again when the wait is over.
                self._forgive()
                front.later(_LOOK_US, self._place)
            return
        front.traffic.judge.placed(front, hold.worker)
        self._calls += 1
        asked = EngineRequest(
            request_id=f"{self.request.number}-{self._calls}",
            ids=self._leg.ids,
            sampling=self._leg.sampling,
            stream=True,
            timeout_s=_DEADLINE_S,
        )
        body = self._wire.generate(asked, bias_width=None)
        self._reader = StreamReader.of(self._leg.sampling, self._wire)
        self._heard_us, self._said = self._now_us, False
        engine = front.traffic.engines[hold.worker]
        self._call = engine.start(front.node, body, partial(self._heard, self._calls))
        front.later(SILENCE_US, self._listen, self._calls)

    def _forgive(self) -> None:
        avoid = self._attempts.avoid
        if avoid.gone and self._now_us - self._since_us >= PLACE_WAIT_US // 2:
            self._attempts.avoid = type(avoid)(avoid.failed | avoid.gone, frozenset())

    def _listen(self, number: int) -> None:
        """Give a call up that has been silent for too long."""
        if self.over or number != self._calls or self._hold is None:
            return
        left_us = self._heard_us + SILENCE_US - self._now_us
        if left_us > 0:
            self._front.later(left_us, self._listen, number)
            return
        self._broke(SmgError(ErrorKind.UPSTREAM_TIMEOUT, "silence", code=STALLED_CODE))

    def _heard(self, number: int, messages: Sequence[bytes], end: End | None) -> None:
        """Take what an engine said, and how it ended."""
        hold, reader = self._hold, self._reader
        if self.over or number != self._calls or hold is None or reader is None:
            return
        self._heard_us = self._now_us
        chunks: list[Chunk] = []
        error: SmgError | None = None
        try:
            reader.take(messages, chunks)
        except SmgError as broken:
            error = broken
        out: list[Event] = []
        for chunk in chunks:
            if chunk.ids:
                hold.spoke(self._front.now_s)
                self._said = True
            self._story.feed(0, chunk, out)
        self._tell(out)
        if self._story.all_over:
            self._whole(hold)
        elif error is not None:
            self._broke(error)
        elif end is not None:
            self._broke(_error(end, reader))

    def _whole(self, hold: Hold) -> None:
        out: list[Event] = []
        self._story.end(out)
        self._tell(out)
        hold.whole(self._front.now_s)
        if self._call is not None:
            self._call.cancel()
        self._ended()
        self._front.traffic.ended(self.request, "whole")

    def _broke(self, error: SmgError) -> None:
        """Go on elsewhere, or say that it broke."""
        front, hold = self._front, self._hold
        assert hold is not None
        self._hold = None
        if self._call is not None:
            self._call.cancel()
        hold.broke(error, front.now_s)
        front.traffic.judge.broke(front, hold, error)
        took_s = front.now_s - hold.since_s
        left_s = _DEADLINE_S - (self._now_us - self._since_us) / SECOND
        broken = Broken(hold.worker, error, self._said, hold.alone, took_s)
        verdict = self._attempts.judge(broken, now_s=front.now_s, left_s=left_s, rng=front.rng)
        if isinstance(verdict, GiveUp):
            self._fail("failed", error.kind, verdict.reason or error.message)
            return
        out: list[Event] = []
        self._story.conclude(0, 1, out)
        self._tell(out)
        if self._story.all_over:
            self._finish()
            return
        (self._leg,) = rest_of(self._leg, self._story, self._tokenizer, prompt_max=None)
        front.traffic.moved += self._said
        self._since_us = self._now_us
        front.later(int(verdict.pause_s * SECOND), self._place)

    def _finish(self) -> None:
        out: list[Event] = []
        self._story.end(out)
        self._tell(out)
        self._ended()
        self._front.traffic.ended(self.request, "whole")

    # ── The client ───────────────────────────────────────────────────────────

    def _tell(self, out: Sequence[Event]) -> None:
        self._grammar.feed(out)
        text = "".join(event.text for event in out if isinstance(event, Delta))
        if text:
            self._front.traffic.judge.note(self.request.hear(text))

    def _fail(self, ending: str, kind: ErrorKind, why: str) -> None:
        out: list[Event] = []
        self._story.fail(SmgError(kind, why), out)
        self._tell(out)
        self._ended()
        self._front.traffic.ended(self.request, "limited" if ending == "limited" else "failed", why)

    def _ended(self) -> None:
        self.over = True
        self._hold = None
        self._front.forget(self.request)

    # ── What comes from outside ──────────────────────────────────────────────

    def workers_changed(self, known: Collection[str]) -> None:
        """Learn which workers there are: one that was removed is let go of at once."""
        if self._hold is not None and self._hold.worker not in known:
            self._broke(closed_here())

    def abandon(self) -> None:
        """Cancel a request whose client is gone: the engine is told, and nothing is left."""
        if self._hold is not None:
            self._hold.dropped(self._front.now_s)
        if self._call is not None:
            self._call.cancel()
        self._ended()

    def gone(self) -> None:
        """The process is over, and its client sees that."""
        if self._call is not None:
            self._call.cancel()
        self.over = True


def _error(end: End, reader: StreamReader) -> SmgError:
    """Return what a call's end means whose answer is not complete."""
    if end.code is Code.OK:
        try:
            reader.end()
        except SmgError as cut:
            return cut
    status = StatusCode(int(end.code)) if end.code is not Code.OK else StatusCode.ABORTED
    error = smg_error(TransportError(status, end.message))
    error.__cause__ = TransportError(status, end.message)
    return error
