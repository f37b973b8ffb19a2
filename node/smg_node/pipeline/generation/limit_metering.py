"""Limit metering: charges token limits while an answer is generated, and ends it at the limit."""

from collections import deque
from collections.abc import Awaitable, Sequence

from smg_node.admission.limit_matching import Matched
from smg_node.admission.ticket import Ticket
from smg_node.core.errors import SmgError
from smg_node.core.generation.byte_sink import BOUNDLESS, ByteSink, FrameTemplate, TokenAllowance
from smg_node.core.generation.events import Event
from smg_node.core.generation.request import GenerateRequest
from smg_node.fleet.models.served_model import ServedModel
from smg_node.pipeline.generation.event_sink import CutShortError, EventSink, Ready, Receive
from smg_node.pipeline.placement.placer import Placer
from smg_node.pipeline.prompt.preparation import Prepared
from smg_node.pipeline.stream.call_constraint import ConstraintCheck
from smg_node.pipeline.stream.generation_stream import GenerationStream


def reserve(
    ticket: Ticket,
    request: GenerateRequest,
    prepared: Sequence[Prepared],
    model: ServedModel,
    placer: Placer,
) -> Awaitable[None] | None:
    """Charge prompts, and an estimate of their answers; return an awaitable, if the charge has to
    wait.

    The awaitable raises LimitedError if a limit refuses the request.
    """
    matched = ticket.matched
    if not matched.tariffs:
        return None
    if request.alike and not matched.worst_case:
        # One chat and one answer, as most are.
        choices, most = 1, request.sampling.max_tokens
        prompt_tokens = len(prepared[0].ids)
    else:
        choices, most, prompt_tokens = _wanted(request, prepared, model, placer, matched)
    if ticket.short_of(prompt_tokens, most, choices) is None:
        return None
    return ticket.reserve(prompt_tokens, most, answers=choices)


def _wanted(
    request: GenerateRequest,
    prepared: Sequence[Prepared],
    model: ServedModel,
    placer: Placer,
    matched: Matched,
) -> tuple[int, int | None, int]:
    """Return the number of answers, their maximum tokens, and the tokens of their prompts."""
    keep, sampling = request.truncate_prompt_tokens, request.sampling
    choices, wanted = len(request.prompts) * sampling.n, sampling.max_tokens
    most = None if wanted is None else wanted * choices
    lengths = [len(prompt.ids) for prompt in prepared]
    if keep is not None and keep > 0:
        lengths = [min(length, keep) for length in lengths]
    context = placer.context(model) if matched.worst_case else None
    if context is not None:
        room = sum(max(0, context - length) for length in lengths) * sampling.n
        most = room if most is None else min(most, room)
    return choices, most, sum(lengths)


class MeteredEventSink(EventSink):
    """Event sink that ends an answer at its token limit, as if it had reached its requested length.

    Events beyond the charged tokens are held until more are charged, and no more is read meanwhile.
    """

    __slots__ = ("_kept", "_prompt_tokens", "_room", "_story", "_ticket")

    def __init__(
        self,
        receive: Receive,
        ready: Ready | None,
        keeping: ConstraintCheck | None,
        through: ByteSink | None,
        ticket: Ticket,
        story: GenerationStream,
    ) -> None:
        super().__init__(receive, ready, keeping, through)
        self._ticket = ticket
        self._story = story
        self._prompt_tokens = story.usage().prompt_tokens
        self._kept: deque[Sequence[Event]] = deque()
        self._room = BOUNDLESS

    @property
    def counts(self) -> bool:
        """See `EventSink`: only limits that end answers look at batches."""
        return self._ticket.matched.finish

    def around(self) -> FrameTemplate | None:
        """See `EventSink`; no frame overtakes held events."""
        return None if self._kept else super().around()

    def room(self) -> TokenAllowance:
        """See `EventSink`."""
        self._room = room = self._ticket.room(self._prompt_tokens)
        return room

    @property
    def outdated(self) -> bool:
        """See `EventSink`."""
        return self._ticket.batch > self._room.at_once

    def put(self, frames: bytes) -> bool:
        """See `EventSink`."""
        self._ticket.passed(self._story.tokens)
        return super().put(frames)

    def say(self, events: Sequence[Event]) -> bool:
        """See `EventSink`."""
        story = self._story
        if not self._kept and (
            self._ticket.streamed(self._prompt_tokens, story.tokens) or story.all_over
        ):
            return super().say(events)
        self._kept.append(events)
        return True

    async def _heard(self) -> None:
        story, ticket, kept = self._story, self._ticket, self._kept
        looked = True
        while kept:
            prompt_tokens, tokens = self._prompt_tokens, story.tokens
            if not (
                story.all_over
                or (not looked and ticket.streamed(prompt_tokens, tokens))
                or await ticket.more(prompt_tokens, tokens)
            ):
                ticket.cut = True
                out = [event for events in kept for event in events]
                story.cut(out)
                kept.clear()
                super().say(out)
                raise CutShortError
            # What came while it was waited for is looked at anew.
            looked = False
            super().say(kept.popleft())
        await super()._heard()


def settle(ticket: Ticket, story: GenerationStream | None, failure: SmgError | None) -> None:
    """Give back the charge that a generation did not use; all of it, if no engine was called."""
    if story is None:
        ticket.void()
        return
    usage = story.used or story.usage()
    if failure is not None and not usage.completion_tokens:
        # Its client has nothing of it, and was told so.
        ticket.settle(0, 0, 0)
        return
    ticket.settle(
        usage.prompt_tokens,
        usage.cached_tokens,
        usage.completion_tokens,
        complete=failure is None and story.closed,
    )
