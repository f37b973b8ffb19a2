"""Plain choice: engine chunks of one choice to events, where its text needs no parsing. Pure.

Without parser, stop strings and log probabilities, what is left is detokenizing and finding the
end, and a choice is one block of text. Its events are those of `ChoiceStream`, for every cutting of
the same ids.
"""

from array import array
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import ClassVar, Final

import msgspec

from smg_node.core.generation.answer import Choice
from smg_node.core.generation.byte_sink import FrameTemplate, TokenAllowance
from smg_node.core.generation.events import BlockEnd, BlockStart, Delta, Event, Finish, FinishReason
from smg_node.core.generation.request import Sampling, TokenIds
from smg_node.engines.chunk import Chunk
from smg_node.native.stream_messages import ChunkReader
from smg_node.native.text_fast_path import CutThrough
from smg_node.pipeline.stream.end_tokens import Ends
from smg_node.tokens.decoding.detokenizer import TableDetokenizer
from smg_node.tokens.tokenizer import Detokenizer

_NO_NOTES: Final[Mapping[str, int]] = MappingProxyType({})
_no_ids: Final = partial(array, "I")
"""`token_ids` of nothing, without a function of ours."""


class PlainStream(msgspec.Struct, eq=False):
    """Reads one choice. `feed` until `over`, or `abandon` when the generation broke.

    It has at most `most` ids, and one of `ending`, which are all that mean something to `ends`, may
    end it; with `keep_stop` a stop id is shown. With `whole` it is only read when it is over, and
    tokens that came together are one delta. A struct, built from cached values: every plain request
    makes one.
    """

    cut_by_string: ClassVar = False
    """Whether a stop string ended this choice: there are none."""
    cut_by_call: ClassVar = False
    """Whether a call ended this choice: there are none."""
    reasoning_tokens: ClassVar = 0
    """How many of its tokens are tokens of thoughts."""
    notes: ClassVar = _NO_NOTES
    """What was odd about the text so far, and how often."""

    _choice: int
    _ends: Ends
    ending: frozenset[int]
    most: int
    _keep_stop: bool
    _detokenizer: Detokenizer
    _whole: bool
    ids: TokenIds = msgspec.field(default_factory=_no_ids)
    """Ids of this choice so far, end-of-text included, whether they were shown or not."""
    over: bool = False
    """Whether it is over."""
    _texts: list[str] | None = None
    """What the block says so far; None where none is open."""
    _silent: tuple[int, ...] = ()
    """Ids that no delta has carried: they have printed nothing yet."""

    @property
    def generated(self) -> int:
        """How many ids this choice has so far."""
        return len(self.ids)

    def feed(self, chunk: Chunk, out: list[Event]) -> None:
        """Take the next chunk of this choice; append its events. Nothing happens once it is over."""
        if self.over:
            return
        ids = chunk.ids
        if ids:
            said, count = self.ids, len(ids)
            if not self.ending.isdisjoint(ids) or len(said) + count > self.most:
                if chunk.apart and not self._whole:
                    for token_id in ids:
                        self.feed(Chunk(chunk.choice, (token_id,)), out)
                    return
                if self._feed_last(ids, out):
                    return
            elif count == 1:
                said.append(ids[0])
                self._say(self._detokenizer.feed(ids[0]), ids, out)
            else:
                said.extend(ids)
                texts = self.texts_of(ids)
                if not chunk.apart or self._whole:
                    self._say("".join(texts), ids, out)
                else:
                    self._say_run(texts, ids, out)
        finish = chunk.finish
        if finish is not None:
            matched = chunk.matched if finish == "stop_sequence" else None
            self._end(out, "length" if finish == "length" else "stop", matched)

    def cut_through(
        self, reader: ChunkReader, around: FrameTemplate, cached: int, room: TokenAllowance
    ) -> CutThrough | None:
        """Return the byte path for plain chunks, which bypass `feed` until another kind comes; None
        where it cannot be used now.

        `cached` is as in `CutThrough`. Not to be used once `feed` was called again.
        """
        texts = self._detokenizer.alone
        if texts is None or self._texts is None or self._silent or self.over:
            return None
        return CutThrough(
            reader,
            texts,
            self.ending,
            most=min(self.most, room.tokens),
            at_once=room.at_once,
            said=self.ids,
            told=self._texts,
            head=around.head,
            tail=around.tail,
            text=around.text,
            cached=cached,
        )

    def conclude(self, out: list[Event]) -> None:
        """End a choice that has all the ids it may have, and whose engine broke before it said so."""
        if not self.over and len(self.ids) == self.most:
            self._end(out, "length", None)

    def cut(self, out: list[Event]) -> None:
        """End a choice here: it may not have more ids, whatever was allowed when it began."""
        if not self.over:
            self._end(out, "length", None)

    def abandon(self, out: list[Event]) -> None:
        """Close what is open because the generation broke; held text is emitted first."""
        if not self.over:
            self._say(self._detokenizer.finish(), (), out)
            if self._texts is not None:
                out.append(BlockEnd(self._choice, 0, "text", "".join(self._texts)))
            self.over = True

    def _feed_last(self, ids: Sequence[int], out: list[Event]) -> bool:
        """Take ids of which one ends the choice, or may; return whether it is over."""
        said = self.ids
        texts: list[str] = []
        end: tuple[FinishReason, int | None] | None = None
        before = len(said)
        for token_id in ids:
            if len(said) == self.most:
                end = ("length", None)
                break
            said.append(token_id)
            shown = True
            if token_id in self.ending:
                end, shown = self._verdict(token_id)
            if shown:
                texts.append(self._detokenizer.feed(token_id))
            if end is not None:
                break
        self._say("".join(texts), tuple(ids[: len(said) - before]), out)
        if end is not None:
            self._end(out, *end)
        return self.over

    def _verdict(self, token_id: int) -> tuple[tuple[FinishReason, int | None] | None, bool]:
        """Return how this id ends the choice, if it does, and whether it is shown as text."""
        ends = self._ends
        if token_id in ends.stop_ids:
            return ("stop", token_id), self._keep_stop
        if token_id in ends.read:
            return ("stop", None), True
        return (("stop", None) if token_id in ends.eos else None), False

    def texts_of(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each of the next ids."""
        detokenizer = self._detokenizer
        if type(detokenizer) is TableDetokenizer:
            return detokenizer.feed_all(ids)
        return [detokenizer.feed(token_id) for token_id in ids]

    def _say(self, text: str, ids: tuple[int, ...], out: list[Event]) -> None:
        """Emit the text of `ids`, all of it at once."""
        if not text:
            if ids:
                self._silent += ids
            return
        if self._silent:
            ids, self._silent = self._silent + ids, ()
        if self._texts is None:
            self._texts = [text]
            out.append(BlockStart(self._choice, 0, "text"))
        else:
            self._texts.append(text)
        out.append(Delta(self._choice, 0, text, len(ids), (), ids))

    def _say_run(self, texts: list[str], ids: Sequence[int], out: list[Event]) -> None:
        """Emit the text of each of `ids`, in a delta of its own."""
        if self._texts is None:
            # The block opens with the first of them.
            self._say(texts[0], (ids[0],), out)
            texts, ids = texts[1:], ids[1:]
        if self._silent or self._texts is None or "" in texts:
            for token_id, text in zip(ids, texts, strict=True):
                self._say(text, (token_id,), out)
            return
        self._texts += texts
        choice = self._choice
        out += [
            Delta(choice, 0, text, 1, (), (token_id,))
            for text, token_id in zip(texts, ids, strict=True)
        ]

    def _end(self, out: list[Event], reason: FinishReason, matched: str | int | None) -> None:
        text = self._detokenizer.finish()
        if text:
            self._say(text, (), out)
        texts, silent, choice = self._texts, self._silent, self._choice
        if silent:
            # What no text has carried: the end-of-text token, or all there is.
            if texts is None:
                texts = []
                out.append(BlockStart(choice, 0, "text"))
            out.append(Delta(choice, 0, "", len(silent), (), silent))
        if texts is not None:
            out.append(BlockEnd(choice, 0, "text", "".join(texts)))
        out.append(Finish(choice, reason, matched))
        self.over = True


class WholeStream(PlainStream, eq=False):
    """Reads one choice without events: `answer` is its result, as a `Collector` would have it."""

    texts: list[str] = []
    """What its ids print, so far."""
    _finish: Finish | None = None

    def feed(self, chunk: Chunk, out: list[Event]) -> None:
        """Take the next chunk of this choice; nothing happens once it is over."""
        if self.over:
            return
        ids = chunk.ids
        if ids:
            said = self.ids
            if not self.ending.isdisjoint(ids) or len(said) + len(ids) > self.most:
                if self._feed_last(ids, out):
                    return
            else:
                said.extend(ids)
                self.texts += self.texts_of(ids)
        finish = chunk.finish
        if finish is not None:
            matched = chunk.matched if finish == "stop_sequence" else None
            self._end(out, "length" if finish == "length" else "stop", matched)

    def end(self, reason: FinishReason, matched: str | int | None) -> None:
        """End it here."""
        text = self._detokenizer.finish()
        if text:
            self.texts.append(text)
        self._finish = Finish(self._choice, reason, matched)
        self.over = True

    def abandon(self, out: list[Event]) -> None:
        """Record that the generation broke: there is no answer."""
        self.over = True

    def answer(self) -> Choice:
        """Return the answer, once it is over."""
        assert self._finish is not None, "it has not finished"
        ids, said = self.ids.tolist(), self.texts
        # Where there is no text there may be ids: then there is an empty block.
        if not ids and not said:
            return Choice([], [], ids, None, self._finish)
        block = BlockEnd(self._choice, 0, "text", "".join(said))
        return Choice([block], [], ids, None, self._finish)

    def _say(self, text: str, ids: tuple[int, ...], out: list[Event]) -> None:
        self.texts.append(text)

    def _end(self, out: list[Event], reason: FinishReason, matched: str | int | None) -> None:
        self.end(reason, matched)


def plain_stream(
    choice: int, sampling: Sampling, ends: Ends, detokenizer: Detokenizer, *, whole: bool
) -> PlainStream:
    """Return the stream of a choice that is drawn with `sampling`, and over at `ends`."""
    most = sampling.max_tokens
    assert most is not None, "prepare decides how long an answer may be"
    return PlainStream(choice, ends, ends.any, most, sampling.keep_stop, detokenizer, whole)
