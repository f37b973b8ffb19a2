"""What one engine call says, fed to the story of its generation."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from msgspec.structs import replace

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.events import Event
from smg_node.engines.chunk import Chunk
from smg_node.engines.chunk_stream import ChunkStream, ends_itself
from smg_node.pipeline.hold import Hold
from smg_node.pipeline.plan import Leg
from smg_node.pipeline.story import Story

ENGINE_ENDS_S: Final = 0.25
"""How long an engine that should be ending by itself is waited for before its call is cancelled."""


class Call:
    """The call of a leg on the worker of a hold. `said` is whether any id came of it."""

    __slots__ = ("_beyond", "_hold", "_leg", "_story", "_unfinished", "cached_tokens", "said")

    def __init__(self, leg: Leg, hold: Hold, story: Story) -> None:
        self._leg = leg
        self._hold = hold
        self._story = story
        self._unfinished = leg.count
        model = hold.worker.model
        assert model is not None
        # The first id that this engine cannot mean. A model may have more rows than its tokenizer has tokens; those
        # print nothing, as everywhere.
        self._beyond = max(model.tokenizer.vocabulary, hold.card.vocabulary or 0)
        self.said = False
        self.cached_tokens = -1
        """How many of the ids that it was sent the engine had cached; -1 if it did not say."""

    def feed(self, chunks: Sequence[Chunk], out: list[Event]) -> None:
        """Append the events of what one wake-up brought. SmgError: none of `out` is wrong, and it goes no further."""
        leg, story, beyond = self._leg, self._story, self._beyond
        for chunk in chunks:
            ids, choice = chunk.ids, chunk.choice
            if ids and (max(ids) >= beyond or min(ids) < 0):
                if chunk.apart:
                    # What stood in the messages before the wrong one is right.
                    self.feed(_before(chunk, beyond), out)
                raise _beyond_vocabulary(ids, beyond)
            if chunk.finish is not None:
                if chunk.finish == "abort":
                    raise SmgError(ErrorKind.UPSTREAM_FAILED, "the engine gave up on the answer")
                self._unfinished -= 1
            if choice and not 0 <= choice < leg.count:
                raise SmgError(
                    ErrorKind.UPSTREAM_FAILED, f"the engine sent answer {choice} of {leg.count}"
                )
            if ids and not self.said:
                self.said = True
                self.cached_tokens = chunk.cached_tokens
            if leg.done:
                # What it had cached of the answer is nobody's saving; the first call told the rest.
                chunk.cached_tokens = -1
            story.feed(leg.first + choice, chunk, out)

    def over(self) -> bool:
        """Whether the answers are over, and the engine has not said so of all of them: nobody waits for more."""
        return self._unfinished > 0 and self._story.over(self._leg.first, self._leg.count)

    async def let_end(self, stream: ChunkStream) -> None:
        """Give an engine that is about to end the call by itself a moment; cancelling costs it more.

        It knows end-of-text, stop ids and the length; stop strings only if its contract has them, and calls not
        at all.
        """
        leg, story = self._leg, self._story
        knows = self._hold.abilities.stop_strings
        if story.cut_by_call(leg.first, leg.count):
            return
        if not knows and story.cut_by_string(leg.first, leg.count):
            return
        try:
            await ends_itself(stream, ENGINE_ENDS_S)
        except SmgError:
            return

    def check_end(self) -> None:
        """Assert nothing: an engine may end a call without finishing it, and that is UPSTREAM_FAILED."""
        if not self._story.over(self._leg.first, self._leg.count):
            raise SmgError(ErrorKind.UPSTREAM_FAILED, "the engine ended without finishing")


def _before(chunk: Chunk, beyond: int) -> list[Chunk]:
    """Return what of a run of messages came before the first id that this engine cannot mean."""
    good = tuple(takewhile(lambda one: 0 <= one < beyond, chunk.ids))
    return [replace(chunk, ids=good, apart=len(good) > 1)] if good else []


def _beyond_vocabulary(ids: Sequence[int], beyond: int) -> SmgError:
    wrong = next(one for one in ids if not 0 <= one < beyond)
    return SmgError(
        ErrorKind.UPSTREAM_FAILED,
        f"the engine sent token id {wrong}, and its vocabulary ends before {beyond}",
    )
