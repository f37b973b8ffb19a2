"""Engine call: one call of one leg, its chunks turned into events in the wake-up that brings them.

Its task sleeps while the call is in progress. A chunk is processed within the wake-up that brought
it, all the way to the client; the task is woken only at the end, and for backpressure.
"""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Event
from smg_node.engines.chunk import Chunk
from smg_node.engines.chunk_stream import ChunkStream, ends_itself
from smg_node.engines.engine import EngineRequest
from smg_node.engines.transport.grpc_status import DEADLINE_CODE
from smg_node.native.text_fast_path import ANY_CACHED, CutThrough
from smg_node.pipeline.generation.call_plan import Leg
from smg_node.pipeline.generation.generation_context import GenerationContext
from smg_node.pipeline.reservation import Reservation
from smg_node.pipeline.retry import Attempts
from smg_node.pipeline.stream.generation_stream import GenerationStream
from smg_node.pipeline.stream.plain_choice import WholeStream

if TYPE_CHECKING:
    # Loaded with the first picture.
    from smg_node.pipeline.media.prompt_media import Handed

_PLAIN_ENDS: Final = ("stop", "length")
"""Ends of which there is nothing more to say."""
ENGINE_ENDS_S: Final = 0.25
"""How long an engine that should be ending by itself is waited for before its call is cancelled."""


class Call(msgspec.Struct, eq=False):
    """Call of a leg on a reserved worker. `said` is whether any id came of it.

    Ids from `beyond` on are outside the engine's vocabulary, and `unfinished` of the leg's answers
    go on. `attempts` are those of its leg; None where it is the first.
    """

    _ground: GenerationContext
    _leg: Leg
    hold: Reservation
    _story: GenerationStream
    _unfinished: int
    _beyond: int
    _attempts: Attempts | None = None
    said: bool = False
    _cached_tokens: int = -1
    """How many of the ids that it was sent the engine had cached; -1 if it did not say."""
    _mistake: SmgError | None = None
    """What it said that is wrong."""
    _behind: bool = False
    """Whether its receiver is."""
    # Where plain text may go past events: of what it would come, and what lets it go now.
    _cuts_from: ChunkStream | None = None
    _cut: CutThrough | None = None

    async def tell(self, trace_headers: Mapping[str, str] | None = None) -> None:
        """Send its events until its answers are over, and count it out.

        If it breaks that is an SmgError, and the worker is still reserved: the caller decides on a
        retry.
        """
        ground, hold, story = self._ground, self.hold, self._story
        leg, alone, telling = self._leg, story.alone, ground.telling
        handed, take = None, self._take
        if leg.media is not None:
            handed = await leg.media.handed(hold.seeing, leg.ids, leg.done, leg.first)
            leg.media.sent(handed)
            take = self._take if handed.way == "tensors" else self._take_counted
        stream = hold.call(self._request(trace_headers, handed))
        # What it was handed may be let go of before the answer is over.
        handed = None
        if story.plain is not None and telling.cuts:
            self._cuts_from = stream
        try:
            while True:
                over = await stream.pour(take)
                cut = self._cut
                if self._behind or (cut is not None and cut.behind):
                    if cut is not None:
                        cut.behind = False
                    self._behind = False
                    await telling.ready()
                if self._mistake is not None:
                    raise self._mistake
                if over:
                    break
                if self._enough():
                    await self._let_end(stream)
                    break
        finally:
            # It knows us by what it calls: together they would stay until the collector comes.
            self._cuts_from = None
            await stream.aclose()
            if leg.media is not None:
                self._note_way(stream)
        if not (story.over(leg.first, leg.count) if alone is None else alone.over):
            # An engine may end a call without finishing it.
            raise SmgError(ErrorKind.UPSTREAM_FAILED, "the engine ended without finishing")
        now_s = ground.parts.clock.monotonic_s()
        hold.ended(now_s)
        if leg.count == 1 and hold.unheard:
            ids = story.choices[leg.first].ids
            ground.parts.placer.answered(hold, ids[leg.done :] if leg.done else ids, now_s)
        hold.release(now_s)

    def _note_way(self, stream: ChunkStream) -> None:
        """Note how the worker got the media of its prompt."""
        journey, hold = self._ground.journey, self.hold
        if journey is not None:
            from smg_node.pipeline.generation.picture_steps import went

            shared = hold.shared or getattr(stream, "shared", False)
            went(journey, hold.caching[0].id, shared=shared)

    def _request(
        self, trace_headers: Mapping[str, str] | None, handed: "Handed | None"
    ) -> EngineRequest:
        ground, leg, attempts = self._ground, self._leg, self._attempts
        context = ground.context
        left_s = context.deadline_s - ground.parts.clock.monotonic_s()
        if left_s <= 0:
            raise SmgError(
                ErrorKind.UPSTREAM_TIMEOUT,
                "the request's time was up before it was sent",
                code=DEADLINE_CODE,
            )
        headers = context.upstream_headers
        # The first call has the id of its answer, so that whoever reads an engine's log finds it.
        first = not leg.first and (attempts is None or attempts.made == 1)
        request = EngineRequest(
            f"eng-{self._story.begin.id}" if first else ground.parts.ids.new("eng-"),
            leg.ids,
            leg.sampling,
            True,
            left_s,
            {**headers, **trace_headers} if trace_headers else headers,
            0 if attempts is None else attempts.silences,
            packed=leg.packed,
        )
        if handed is None:
            return request
        packed = leg.packed if handed.ids is leg.ids else None
        return replace(request, ids=handed.ids, packed=packed, media=handed.media)

    # ── Within a wake-up ─────────────────────────────────────────────────────

    def _take_counted(self, chunks: Sequence[Chunk]) -> bool:
        """As `_take`, of an engine that alone knows how long its prompt is with the media that it reads itself."""
        story = self._story
        told = max([chunk.prompt_tokens for chunk in chunks], default=-1) - self._leg.done
        # What a client was told stays.
        if told > story.begin.prompt_tokens and (not story.begun or story.whole is not None):
            story.begin = replace(story.begin, prompt_tokens=told)
        return self._take(chunks)

    def _take(self, chunks: Sequence[Chunk]) -> bool:
        """Process the chunks of one wake-up; whether more is wanted at once."""
        had_said = self.said
        out: list[Event] = []
        try:
            whole = self._story.whole
            if whole is None:
                self._feed(chunks, out)
            else:
                self._feed_whole(whole, chunks, out)
        except SmgError as error:
            # What stood before the mistake is right, and has been taken for said.
            self._mistake = error
        else:
            if self.said and not had_said:
                ground, hold = self._ground, self.hold
                now_s = ground.parts.clock.monotonic_s()
                if ground.first_token_s is None:
                    ground.first_token_s = now_s
                hold.spoke(now_s, self._cached_tokens)
                ground.parts.placer.confirmed(hold, now_s)
                if self._leg.media is not None:
                    self._leg.media.heard(self._leg.first)
        if out:
            self._behind = self._ground.telling.say(out)
        if self._cuts_from is not None:
            self._cut_through(self._cuts_from)
        if self._behind or self._mistake is not None:
            return False
        # Once the engine has said so, too, it only has to be heard out.
        return not self._unfinished or not self._enough()

    def _feed(self, chunks: Sequence[Chunk], out: list[Event]) -> None:
        """Append the events of the chunks of one wake-up. SmgError: none of `out` is wrong, and no
        more is read.
        """
        leg, beyond, story = self._leg, self._beyond, self._story
        alone = story.alone
        for chunk in chunks:
            ids, finish = chunk.ids, chunk.finish
            if ids and not (
                0 <= ids[0] < beyond if len(ids) == 1 else max(ids) < beyond and min(ids) >= 0
            ):
                if chunk.apart and (good := _before(chunk, beyond)):
                    # What stood in the messages before the wrong one is right.
                    self._feed(good, out)
                raise _beyond_vocabulary(ids, beyond)
            if finish is not None:
                if finish == "abort":
                    raise SmgError(ErrorKind.UPSTREAM_FAILED, "the engine gave up on the answer")
                self._unfinished -= 1
            if chunk.choice and not 0 <= chunk.choice < leg.count:
                raise SmgError(
                    ErrorKind.UPSTREAM_FAILED,
                    f"the engine sent answer {chunk.choice} of {leg.count}",
                )
            if ids and not self.said:
                self.said = True
                self._cached_tokens = chunk.cached_tokens
            if leg.done:
                # What it had cached of the answer is nobody's saving; the first call told the rest.
                chunk.cached_tokens = -1
            if alone is None:
                story.feed(leg.first + chunk.choice, chunk, out)
                continue
            # As the story would, without going through it: nearly all answers are the only one.
            if not story.begun:
                story.start(out)
            if chunk.cached_tokens > story.cached:
                story.cached = chunk.cached_tokens
            alone.feed(chunk, out)

    def _feed_whole(self, whole: WholeStream, chunks: Sequence[Chunk], out: list[Event]) -> None:
        """As `_feed`, for an answer without a stream; chunks that are like nearly all of them go no
        further.
        """
        story, said, beyond = self._story, whole.ids, self._beyond
        for chunk in chunks:
            ids, finish = chunk.ids, chunk.finish
            if (
                whole.over
                or chunk.choice
                or (finish is not None and finish not in _PLAIN_ENDS)
                or (
                    ids
                    and (
                        max(ids) >= beyond
                        or min(ids) < 0
                        or not whole.ending.isdisjoint(ids)
                        or len(said) + len(ids) > whole.most
                    )
                )
                or self._leg.done
            ):
                self._feed((chunk,), out)
                continue
            if ids:
                if not self.said:
                    self.said = True
                    self._cached_tokens = chunk.cached_tokens
                said.extend(ids)
                whole.texts += whole.texts_of(ids)
            if chunk.cached_tokens > story.cached:
                story.cached = chunk.cached_tokens
            if finish is not None:
                self._unfinished -= 1
                whole.end("length" if finish == "length" else "stop", None)

    def _cut_through(self, stream: ChunkStream) -> None:
        """Switch to the byte path for plain text that comes next, if no other processing is needed
        now.
        """
        plain = self._story.plain
        assert plain is not None, "only plain text goes past events"
        if plain.over:
            # Nothing comes next, and what is let by now finds that out.
            if self._cut is not None:
                self._cut = None
                stream.pass_by(None)
            return
        telling = self._ground.telling
        reader, around, cut = stream.plain, telling.around(), None
        if self.said and self._mistake is None and reader is not None and around is not None:
            # What an engine had cached of an answer's beginning is nobody's saving.
            cached = ANY_CACHED if self._leg.done else self._story.cached
            cut = plain.cut_through(reader, around, cached, telling.room())
        self._cut = cut
        if cut is None:
            stream.pass_by(None)
        elif telling.counts:
            stream.pass_by(self._pass)
        else:
            cut.to(telling.straight, telling.mute)
            stream.pass_by(cut.show)

    def _pass(self, batch: Sequence[bytes]) -> bool | None:
        """Send messages of plain text as bytes of whole frames, with tokens counted; None if they
        are something else.
        """
        cut, telling = self._cut, self._ground.telling
        assert cut is not None, "who passes by has been let"
        if telling.outdated:
            return None
        frames = cut.take(batch)
        if not frames:
            return None
        self._behind = telling.put(frames)
        return not self._behind

    # ── Its end ──────────────────────────────────────────────────────────────

    def _enough(self) -> bool:
        """Whether the answers are over although the engine has not ended all of them: no more is
        read.
        """
        return self._unfinished > 0 and self._story.over(self._leg.first, self._leg.count)

    async def _let_end(self, stream: ChunkStream) -> None:
        """Give an engine that is about to end the call by itself a moment; cancelling costs it
        more.

        It knows end-of-text, stop ids and the length; stop strings only if it was told them, and calls not at all.
        """
        leg, story = self._leg, self._story
        knows = self.hold.abilities.stop_strings and leg.sampling.stop
        if story.cut_by_call(leg.first, leg.count):
            return
        if not knows and story.cut_by_string(leg.first, leg.count):
            return
        try:
            await ends_itself(stream, ENGINE_ENDS_S)
        except SmgError:
            return


def _before(chunk: Chunk, beyond: int) -> list[Chunk]:
    """Return the part of a run of messages before the first id outside the engine's vocabulary."""
    good = tuple(takewhile(lambda one: 0 <= one < beyond, chunk.ids))
    return [replace(chunk, ids=good, apart=len(good) > 1)] if good else []


def _beyond_vocabulary(ids: Sequence[int], beyond: int) -> SmgError:
    wrong = next(one for one in ids if not 0 <= one < beyond)
    return SmgError(
        ErrorKind.UPSTREAM_FAILED,
        f"the engine sent token id {wrong}, and its vocabulary ends before {beyond}",
    )
