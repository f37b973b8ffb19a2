"""Choice stream: engine chunks of one choice to events: detokenize, stop, parse, frame. Pure.

    ids -> text -> text without the stop -> pieces -> events

Guarantees, for every cutting of the same ids into chunks: the same text, the same finish. End-of-text
and stop ids never become text (unless the request keeps them); a stop string ends the choice where
its occurrence starts, also across token borders, even if the engine goes on. Tokens are counted from
the chunks alone: servicers differ in what their last message repeats.

A log probability travels with the text that holds its token's first character; tokens cut off by a
stop string lose theirs unless the choice is scored, and so do those of markers (`token_attribution`).

The source of the ids does not matter. A stream keeps every id it has taken, so that another engine
can be given them behind the prompt and continue; its ids are fed to the same stream, in which held
bytes, half a stop string and the parser's state are as they were.
"""

from collections import deque
from collections.abc import Mapping, Sequence

from smg_node.core.generation.events import BlockKind, Event, FinishReason, TokenLogprob
from smg_node.core.generation.request import Sampling, TokenIds, token_ids
from smg_node.engines.chunk import Chunk, IdLogprob
from smg_node.parsers.reading.parser import Parser
from smg_node.pipeline.stream.answer_stop import stop_of
from smg_node.pipeline.stream.end_tokens import Ends
from smg_node.pipeline.stream.framer import Framer
from smg_node.pipeline.stream.logprob_text import missing_logprobs, spell_logprob
from smg_node.pipeline.stream.token_attribution import TokenAttribution
from smg_node.tokens.decoding.detokenizer import TableDetokenizer
from smg_node.tokens.tokenizer import Detokenizer, Tokenizer


class ChoiceStream:
    """Reads one choice. `feed` until `over`, or `abandon` when the generation broke."""

    def __init__(
        self,
        choice: int,
        *,
        sampling: Sampling,
        ends: Ends,
        tokenizer: Tokenizer,
        detokenizer: Detokenizer,
        parser: Parser,
        single: bool = False,
        whole: bool = False,
        scored: bool = False,
    ) -> None:
        """Begin a choice; with `single` it is over with its first complete call.

        With `whole` it is only read when it is over, and tokens that came together are one delta. With
        `scored` every id has its log probability told, also one that ends it; UPSTREAM_FAILED at its end if not.
        """
        assert sampling.max_tokens is not None, "prepare decides how long an answer may be"
        self._framer = Framer(choice)
        self._ends = ends
        self._ending = ends.any
        self._keep_stop = sampling.keep_stop
        self._generated_min = sampling.min_tokens
        self._generated_max = sampling.max_tokens
        self._tokenizer = tokenizer
        self._detokenizer = detokenizer
        self._table = detokenizer if isinstance(detokenizer, TableDetokenizer) else None
        self._spoken = TokenAttribution(parser, single=single)
        self._reader = self._spoken.reader
        self._stop = stop_of(sampling, parser)
        # Where one call may end the choice, it ends with the call's last token and not with its last packet.
        self._whole = whole and not single
        self._scored, self._lacks_rows = scored and sampling.logprobs is not None, False
        self._quick = self._stop is None and sampling.logprobs is None
        # Tokens that began and are not known to be said, each with the offset of its first character.
        self._waiting: deque[tuple[int, TokenLogprob | None]] = deque()
        self._waits = self._reader is not None or sampling.logprobs is not None
        self._printed = 0
        self._passed = 0
        # Tokens of a character that is not whole.
        self._silent = 0
        # What the next delta carries.
        self._tokens = 0
        self._ids: list[int] = []
        self.over = False
        self.cut_by_string = False
        """Whether a stop string ended this choice: the engine may not know."""
        self.cut_by_call = False
        """Whether a call that was to be the only one ended this choice: the engine does not know."""
        self.ids: TokenIds = token_ids()
        """Ids of this choice so far, end-of-text included, whether they were shown or not."""

    @property
    def generated(self) -> int:
        """How many ids this choice has so far."""
        return len(self.ids)

    @property
    def reasoning_tokens(self) -> int:
        """How many of them are tokens of thoughts."""
        return self._spoken.reasoning_tokens

    @property
    def notes(self) -> Mapping[str, int]:
        """Irregularities of the text so far, with their counts."""
        return self._reader.notes if self._reader is not None else {}

    def feed(self, chunk: Chunk, out: list[Event]) -> None:
        """Take the next chunk of this choice; append its events. Nothing happens once it is over."""
        if self.over:
            return
        ids = chunk.ids
        if (
            self._quick
            and chunk.finish is None
            and self._ending.isdisjoint(ids)
            and len(self.ids) + len(ids) <= self._generated_max
        ):
            if chunk.apart and not self._whole:
                self._feed_run(ids, out)
            else:
                self._feed_quick(ids, out)
            return
        if chunk.apart:
            for token_id in ids:
                self.feed(Chunk(chunk.choice, (token_id,)), out)
            return
        self._feed_slow(chunk, out)

    def conclude(self, out: list[Event]) -> None:
        """End a choice that has all the ids it may have, and whose engine broke before it said so."""
        if not self.over and len(self.ids) == self._generated_max:
            self._end(out, "length", None)

    def cut(self, out: list[Event]) -> None:
        """End a choice here: it may not have more ids, whatever was allowed when it began."""
        if not self.over:
            self._lacks_rows = False
            self._end(out, "length", None)

    def abandon(self, out: list[Event]) -> None:
        """Close what is open because the generation broke; held text is emitted first."""
        if not self.over:
            self._flush(out)
            self._framer.abandon(out)
            self.over = True

    def _feed_quick(self, ids: tuple[int, ...], out: list[Event]) -> None:
        """Take ids that end nothing, where text goes from the detokenizer to the parser as it is."""
        feed = self._detokenizer.feed
        texts = None
        if len(ids) == 1:
            token_id = ids[0]
            self.ids.append(token_id)
            text = feed(token_id)
        else:
            self.ids.extend(ids)
            table = self._table
            texts = [feed(one) for one in ids] if table is None else table.feed_all(ids)
            text = "".join(texts)
        self._say(ids, texts, text, out)

    def _feed_run(self, ids: tuple[int, ...], out: list[Event]) -> None:
        """Take ids that came one by one, as `_feed_quick` would each of them."""
        table = self._table
        if table is not None:
            texts = table.feed_all(ids)
        else:
            texts = [self._detokenizer.feed(token_id) for token_id in ids]
        if self._say_run(ids, texts, out):
            return
        for at, token_id in enumerate(ids):
            self.ids.append(token_id)
            self._say((token_id,), None, texts[at], out)
            # The parser is calm only when it has seen the answer begin.
            if self.over or (at == 0 and self._say_run(ids[1:], texts[1:], out)):
                return

    def _say_run(self, ids: tuple[int, ...], texts: list[str], out: list[Event]) -> bool:
        """Emit ids that each print whole characters, none of which could begin a marker; False if
        these do not.

        Such text has no marker in its parts if it has none as a whole, so a run is scanned once:
        0.5 us a token from engine to frame, where each alone takes 1.7.
        """
        if self._tokens or "" in texts:
            return False
        kind: BlockKind = "text"
        if self._reader is not None:
            calm = self._reader.calm
            if calm is None or calm[1]("".join(texts)) is not None:
                return False
            kind = calm[0]
            if kind == "reasoning":
                self._spoken.reasoning_tokens += len(ids)
        self.ids.extend(ids)
        self._framer.run(out, texts, ids, kind)
        return True

    def _say(
        self, ids: tuple[int, ...], texts: Sequence[str] | None, text: str, out: list[Event]
    ) -> None:
        """Emit the text of `ids`: `text`, or where there are several, `texts`, of which that is the
        whole.
        """
        count = len(ids)
        if not text:
            self._tokens += count
            self._ids += ids
            self._silent += count
            return
        kind: BlockKind = "text"
        reader = self._reader
        if reader is not None:
            calm = reader.calm
            if calm is None or calm[1](text) is not None:
                self._feed_marked(ids, texts or (text,), out)
                return
            kind = calm[0]
            if kind == "reasoning":
                self._spoken.reasoning_tokens += count + self._silent
        self._silent = 0
        if self._tokens:
            count += self._tokens
            ids = (*self._ids, *ids)
            self._tokens, self._ids = 0, []
        self._framer.text(out, text, count, ids, kind)

    def _feed_marked(self, ids: tuple[int, ...], texts: Sequence[str], out: list[Event]) -> None:
        """Take ids whose texts may have markers, or belong to one."""
        self._tokens += len(ids)
        self._ids += ids
        spoken = self._spoken
        spoken.tokens(self._silent)
        self._silent = 0
        for text in texts:
            spoken.tokens(1)
            spoken.feed(text)
        self._tell(out)

    def _feed_slow(self, chunk: Chunk, out: list[Event]) -> None:
        """Take what ends the choice or may, or does not go from the detokenizer to the parser as it is."""
        assert not chunk.logprobs or len(chunk.logprobs) == len(chunk.ids)
        if self._silent:
            self._spoken.tokens(self._silent)
            self._silent = 0
        end = None
        if chunk.ids:
            free, text, end = self._read(chunk)
            if free:
                self._let_out(free, out)
            if not self.over:
                self._pass(text, out)
            if self.over:
                return
        if end is not None:
            self._end(out, *end)
        elif chunk.finish is not None:
            reason: FinishReason = "length" if chunk.finish == "length" else "stop"
            self._end(out, reason, chunk.matched if chunk.finish == "stop_sequence" else None)

    def _read(self, chunk: Chunk) -> tuple[str, str, tuple[FinishReason, int | None] | None]:
        """Detokenize ids up to one that ends the choice; return the text and that end, if any.

        The text comes in two parts: no stop string counts in what the first `min_tokens` print.
        """
        free: list[str] = []
        texts: list[str] = []
        end: tuple[FinishReason, int | None] | None = None
        taken = 0
        for at, token_id in enumerate(chunk.ids):
            if len(self.ids) == self._generated_max:
                end = ("length", None)
                break
            self.ids.append(token_id)
            taken += 1
            shown = True
            if token_id in self._ending:
                end, shown = self._verdict(token_id)
            if shown:
                part = free if len(self.ids) <= self._generated_min else texts
                part.append(self._print(token_id, chunk.logprobs[at] if chunk.logprobs else None))
            elif self._scored:
                self._wait(chunk.logprobs[at] if chunk.logprobs else None)
            if end is not None:
                break
        self._tokens += taken
        self._ids += chunk.ids if taken == len(chunk.ids) else chunk.ids[:taken]
        return "".join(free), "".join(texts), end

    def _verdict(self, token_id: int) -> tuple[tuple[FinishReason, int | None] | None, bool]:
        """Return how this id ends the choice, if it does, and whether it is shown as text."""
        if token_id in self._ends.stop_ids:
            return ("stop", token_id), self._keep_stop
        if token_id in self._ends.read:
            return ("stop", None), True
        if token_id in self._ends.eos:
            return ("stop", None), False
        return None, False

    def _print(self, token_id: int, logprob: IdLogprob | None) -> str:
        if self._waits:
            self._wait(logprob)
        text = self._detokenizer.feed(token_id)
        self._printed += len(text)
        return text

    def _wait(self, logprob: IdLogprob | None) -> None:
        """Note a token that begins with the next text, if there is any."""
        spelled = None if logprob is None else spell_logprob(logprob, self._tokenizer)
        self._lacks_rows = self._lacks_rows or (self._scored and spelled is None)
        self._waiting.append((self._printed, spelled))

    def _pass(self, text: str, out: list[Event]) -> None:
        """Send text through stop matching, parser and framer; ends the choice if a stop matches."""
        if self._stop is None:
            self._let_out(text, out)
            return
        self._stopped(self._stop.feed(text, self._hand_on), out)

    def _stopped(self, matched: str | None, out: list[Event]) -> None:
        """Emit what was handed on; end the choice where a stop string matched."""
        self._tell(out)
        if matched is None or self.over:
            return
        if self._scored:
            self._drain()
        self._spoken.finish()
        self._tell(out, ending=True)
        self._close(out, self._stop_reason(), matched)
        self.cut_by_string = True

    def _stop_reason(self) -> FinishReason:
        """Return why an answer that a stop string ended is over: for its calls, if they are complete."""
        if not self._spoken.called or self._reader is None:
            return "stop"
        calls = self._reader.out
        if calls.closed == calls.calls or self._framer.has_whole_call:
            return "tool_calls"
        return "stop"

    def _let_out(self, text: str, out: list[Event]) -> None:
        """Send text to the parser, and emit its pieces."""
        self._hand_on(text)
        self._tell(out)

    def _hand_on(self, text: str) -> None:
        """Send text to the parser, a token at a time."""
        start = at = self._passed
        self._passed = end = start + len(text)
        spoken, waiting = self._spoken, self._waiting
        while waiting and waiting[0][0] < end:
            offset, logprob = waiting.popleft()
            if offset > at:
                spoken.feed(text[at - start : offset - start])
                at = offset
            spoken.token(logprob)
        spoken.feed(text[at - start :])

    def _tell(self, out: list[Event], *, ending: bool = False) -> None:
        """Append the events of the parser's pieces; ends the choice if it may not go on."""
        pieces, rows = self._spoken.take()
        if pieces and self._framer.pieces(out, pieces, self._tokens, tuple(self._ids), rows):
            self._tokens, self._ids = 0, []
        if self._spoken.complete and not ending and not self.over:
            self._close(out, "tool_calls", None)
            self.cut_by_call = True

    def _flush(self, out: list[Event]) -> None:
        """Release held text; a stop string may still match in it and end the choice."""
        text = self._detokenizer.finish()
        if text:
            self._pass(text, out)
            if self.over:
                return
        if self._stop is not None:
            self._stopped(self._stop.finish(self._hand_on), out)
            if self.over:
                return
        self._drain()
        self._spoken.finish()
        self._tell(out, ending=True)

    def _drain(self) -> None:
        """Give the parser's tokens those that no text came of."""
        for _, logprob in self._waiting:
            self._spoken.token(logprob)
        self._waiting.clear()

    def _end(self, out: list[Event], reason: FinishReason, matched: str | int | None) -> None:
        self._flush(out)
        if self.over:
            return
        if reason == "stop" and self._spoken.called:
            reason = self._stop_reason() if isinstance(matched, str) else "tool_calls"
        self._close(out, reason, matched)

    def _close(self, out: list[Event], reason: FinishReason, matched: str | int | None) -> None:
        if self._lacks_rows:
            raise missing_logprobs("the answer")
        self._framer.rest(out, self._tokens, tuple(self._ids), tuple(self._spoken.rest))
        self._framer.finish(out, reason, matched)
        self.over = True
