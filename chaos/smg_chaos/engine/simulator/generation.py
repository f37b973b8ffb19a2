"""Generation: one Generate call in progress, whose tokens become this servicer's messages."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from smg_chaos.engine.pairs.handover import Handed
from smg_chaos.engine.protocol.faults import Fault
from smg_chaos.engine.protocol.generate_request import Asked
from smg_chaos.engine.protocol.response_writer import Ending, Writer
from smg_chaos.engine.protocol.rpc_call import FINE, Call, Code, End
from smg_chaos.engine.protocol.servicer_behaviours import (
    Aborted,
    AfterChunks,
    Coalesce,
    EmptyChunks,
    Manners,
)
from smg_chaos.engine.simulator.choice import Choice, State
from smg_chaos.engine.simulator.rank import Rank

GenerationChoice: TypeAlias = Choice["Generation"]
"""One of a Generate call's answers."""
GenerationRank: TypeAlias = Rank["Generation"]
"""A rank that works on Generate calls."""
AHEAD: Final = 128
"""Tokens whose messages are made at once."""


class Generation(Call):
    """A Generate call.

    `release` takes back what the engine holds when the caller goes; `then` runs when the last choice
    is over (prefills and probes that belong to something else). `verdict` ends the call once
    everything made so far was taken.
    """

    __slots__ = (
        "_ahead",
        "_ahead_from",
        "_single",
        "aborting",
        "adopted",
        "asked",
        "choices",
        "fault",
        "group",
        "handed",
        "home",
        "lost",
        "manners",
        "plan_again",
        "ready_s",
        "received",
        "release",
        "then",
        "transfer",
        "verdict",
        "withheld",
        "writer",
    )

    def __init__(
        self, asked: Asked, writer: Writer, manners: Manners, home: GenerationRank, *, group: int
    ) -> None:
        super().__init__()
        self.asked = asked
        self._single = (
            asked.stream and group <= 1 and asked.logprobs is None and asked.prompt_logprobs is None
        )
        """Whether its tokens come one by one and alone, as long as there is one answer."""
        self._ahead: list[bytes] = []
        self._ahead_from = 0
        """Messages of such tokens, made before they are due, and the position of the first of them."""
        self.home = home
        self.writer = writer
        self.manners = manners
        self.group = group
        self.choices: list[GenerationChoice] = []
        self.adopted: list[GenerationChoice] = []
        """Choices of an earlier call under the same id, whose messages come here now."""
        self.fault: Fault | None = None
        self.plan_again: Callable[[], None] | None = None
        """Plans its answers anew, while none has begun: what is seen in its pictures is another thing."""
        self.received = False
        """Whether the pictures that others encode for it have come."""
        self.aborting = False
        """It was aborted, and may still print something."""
        self.lost = False
        """Nothing will ever come any more, not even an end."""
        self.verdict: End | None = None
        self.handed: Handed | None = None
        """What somebody else has computed of its prompt."""
        self.transfer = ""
        """What its last message tells whoever goes on elsewhere."""
        self.withheld = False
        """Nothing of it is shown yet."""
        self.ready_s = 0.0
        """When its prompt is computed."""
        self.release: Callable[[Generation, float], None] | None = None
        self.then: Callable[[float], None] | None = None

    def take(self, *, lagging: bool = False) -> list[bytes]:
        """Return the messages for the tokens made since the last call."""
        if self._single and self._goes_on() and not (lagging or self._ready):
            return self._next()
        out = super().take()
        if self.lost or self.end is not None:
            return out
        if self.withheld:
            self.end = self.verdict
            return out
        if self.asked.stream:
            merged = lagging and self.manners.coalesce is Coalesce.WHEN_READER_LAGS
            for choice in (*self.adopted, *self.choices) if self.adopted else self.choices:
                self._chunks(choice, out, merged=merged or self.group > 1)
        if self.verdict is not None:
            self.end = self.verdict
        else:
            self._completes(out)
        return out

    def _goes_on(self) -> bool:
        """Whether it has one answer, in the middle of which it is, and nothing else is to be sent
        or held back.
        """
        choices = self.choices
        if len(choices) != 1 or self.adopted or self.fault is not None or self.verdict is not None:
            return False
        only = choices[0]
        if only.state is not State.PLACED or only.hold_to is not None or not only.made:
            return False
        return not (only.told or self.lost or self.withheld or self.end is not None)

    def _next(self) -> list[bytes]:
        choice = self.choices[0]
        sent, made = choice.sent, choice.made
        if sent == made:
            return []
        ahead, first = self._ahead, self._ahead_from
        if made - first > len(ahead):
            # Many at once: one at a time they cost several times as much, each in a cold cache.
            spoken, answer, one = choice.spoken, choice.answer, self.writer.one
            assert spoken is not None, "who made a token was begun"
            first = self._ahead_from = sent
            stop = max(made, min(sent + AHEAD, choice.end_at))
            ahead = self._ahead = [one(spoken, answer, at) for at in range(sent, stop)]
        choice.sent, choice.last_start = made, made - 1
        choice.first_shown = True
        return ahead[sent - first : made - first]

    @property
    def made(self) -> int:
        """How many tokens were made for it."""
        return sum(choice.made for choice in self.choices)

    # ── Chunks ──────────────────────────────────────────────────────────────

    def _chunks(self, choice: GenerationChoice, out: list[bytes], *, merged: bool) -> None:
        if choice.told or choice.spoken is None:
            return
        limit = choice.shown(self.group)
        if merged or choice.hold_to is not None:
            while choice.sent < limit:
                step = limit - choice.sent if self.group <= 1 else self.group
                self._show(choice, min(limit, choice.sent + step), out)
        elif self._plain(choice):
            spoken, answer, one = choice.spoken, choice.answer, self.writer.one
            for at in range(choice.sent, limit):
                out.append(one(spoken, answer, at))
                choice.last_start = at
                choice.sent = at + 1
                choice.first_shown = True
        else:
            while choice.sent < limit:
                self._show(choice, choice.sent + 1, out)
        if choice.end_at == 0 and choice.ending is not None and not choice.first_shown:
            out.append(self._chunk(choice, 0, 0))

    def _plain(self, choice: GenerationChoice) -> bool:
        return (
            self.fault is None
            and not choice.trimmed
            and self.asked.logprobs is None
            and self.asked.prompt_logprobs is None
        )

    def _show(self, choice: GenerationChoice, stop: int, out: list[bytes]) -> None:
        start, choice.sent, choice.last_start = choice.sent, stop, choice.sent
        if choice.visible(stop) > start or self._sends_empty(choice):
            out.append(self._chunk(choice, start, stop))

    def _sends_empty(self, choice: GenerationChoice) -> bool:
        empty = self.manners.empty_chunks
        if empty is EmptyChunks.FIRST_ONLY:
            return not choice.first_shown
        return empty is EmptyChunks.SENT

    def _chunk(self, choice: GenerationChoice, start: int, stop: int) -> bytes:
        assert choice.spoken is not None
        visible = max(choice.visible(stop), start)
        ids = self._ids(choice, start, visible)
        total = stop if self.manners.end_ids_counted else visible
        extra = b""
        if self.asked.logprobs is not None:
            extra = self.writer.logprobs.chunk(ids, self.asked.logprobs)
        if not choice.first_shown and self.asked.prompt_logprobs is not None:
            extra += self.writer.logprobs.prompt_chunk(self.asked.ids, self.asked.prompt_logprobs)
        choice.first_shown = True
        return self.writer.chunk(choice.spoken, ids, total, extra, self._off())

    def _ids(self, choice: GenerationChoice, start: int, stop: int) -> Sequence[int]:
        ids = choice.answer.slice(start, stop)
        fault = self.fault
        if fault is None or fault.name != "bad-ids":
            return ids
        after, beyond = fault.number("after"), self.writer.vocabulary
        return [beyond + token if start + at >= after else token for at, token in enumerate(ids)]

    def _off(self) -> int:
        fault = self.fault
        return fault.number("by") if fault is not None and fault.name == "wrong-counts" else 0

    # ── Ends ────────────────────────────────────────────────────────────────

    def _completes(self, out: list[bytes]) -> None:
        together = self.manners.completes_together or not self.asked.stream
        if together and not all(choice.over for choice in self.choices):
            return
        for choice in (*self.adopted, *self.choices):
            if choice.over and not choice.told and choice.ending is not None:
                choice.told = True
                self._complete(choice, out)
                if self.adopted:
                    self.end = FINE
                    return
        if self.choices and all(choice.told for choice in self.choices):
            self.end = FINE

    def _complete(self, choice: GenerationChoice, out: list[bytes]) -> None:
        fault = self.fault.name if self.fault is not None else ""
        if choice.spoken is None or fault == "no-complete":
            return
        last = self._last(choice, choice.ending or Ending(""))
        out.extend((last, last) if fault == "double-complete" else (last,))

    def _last(self, choice: GenerationChoice, ending: Ending) -> bytes:
        assert choice.spoken is not None
        visible = choice.made - choice.trimmed
        start = self._repeated_from(choice)
        ids = self._ids(choice, start, max(start, visible))
        total = choice.made if self.manners.end_ids_counted else visible
        if self.asked.stream and not self.manners.total_in_complete:
            total = len(ids)
        extra = b""
        if self.asked.logprobs is not None:
            extra = self.writer.logprobs.complete(ids, self.asked.logprobs)
        if self.asked.prompt_logprobs is not None:
            top = self.asked.prompt_logprobs
            extra += self.writer.logprobs.prompt_complete(self.asked.ids, top)
        if self.transfer:
            extra += self.writer.transfer.holding(self.transfer.encode())
        return self.writer.complete(choice.spoken, ids, total + self._off(), ending, extra)

    def _repeated_from(self, choice: GenerationChoice) -> int:
        """Return the position from which on the complete message repeats the answer."""
        if not self.asked.stream or self.manners.after_chunks is AfterChunks.ALL:
            return 0
        if self.manners.after_chunks is AfterChunks.NOTHING:
            return choice.made
        return choice.last_start

    # ── From outside ────────────────────────────────────────────────────────

    def cancel(self, now_s: float) -> None:
        """Free the slots and blocks of every choice."""
        super().cancel(now_s)
        self._give_back(now_s)

    def cut(self, end: End) -> None:
        """End the call now; what was made and not taken is lost."""
        super().cut(end)

    def _give_back(self, now_s: float) -> None:
        if self.release is not None:
            release, self.release = self.release, None
            release(self, now_s)

    def abort(self, now_s: float) -> None:
        """Free everything, and send what this servicer sends when a request is aborted."""
        manner = self.manners.aborted
        self.aborting = True
        unfinished = [choice for choice in self.choices if not choice.over]
        self._give_back(now_s)
        if manner is Aborted.NEVER_ENDS:
            self.lost = True
        elif manner is Aborted.ENDS_WITHOUT_COMPLETE:
            self.cut(FINE)
        elif manner is Aborted.RPC_ERROR:
            self.cut(End(Code.INTERNAL, "aborted"))
        else:
            emptied = manner is Aborted.EMPTY_COMPLETE and self.asked.stream
            self._end_in_words(unfinished, Ending(self.manners.abort_reason), emptied=emptied)

    def fail(self, now_s: float) -> None:
        """Free everything, and report the failure in a message where the contract has one."""
        self.aborting = True
        unfinished = [choice for choice in self.choices if not choice.over]
        self._give_back(now_s)
        self._end_in_words(unfinished, Ending("error"), emptied=self.asked.stream)

    def _end_in_words(
        self, unfinished: Sequence[GenerationChoice], ending: Ending, *, emptied: bool
    ) -> None:
        for choice in unfinished:
            if choice.spoken is None:
                choice.spoken = self.writer.spoken(
                    self.asked.request_id, prompt=len(self.asked.ids), cached=0, index=choice.index
                )
            choice.ending, choice.trimmed = ending, 0
            if emptied:
                choice.told = True
                self.say(self.writer.chunk(choice.spoken, (), 0))
                self.say(self.writer.complete(choice.spoken, (), 0, ending))
