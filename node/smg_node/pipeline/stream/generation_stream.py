"""Generation stream: merges all choices of one generation into one stream of events. Pure.

Begin comes with the first chunk (or with the end, if there was none), a prompt that is to be echoed
comes before its choice's first block, chunks go to their choices, and when every choice is over:
Usage and End. A failure closes what is open and emits Fail; nothing follows it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from smg_node.core.errors import SmgError
from smg_node.core.generation.answer import Answer
from smg_node.core.generation.events import Begin, End, Event, Fail, PromptEcho, TokenLogprob, Usage
from smg_node.engines.chunk import Chunk, IdLogprob
from smg_node.pipeline.stream.choice_stream import ChoiceStream
from smg_node.pipeline.stream.logprob_text import missing_logprobs, spell_logprob
from smg_node.pipeline.stream.plain_choice import PlainStream, WholeStream
from smg_node.tokens.tokenizer import Tokenizer

AnyStream: TypeAlias = ChoiceStream | PlainStream
_END: Final = End()


@dataclass(frozen=True, slots=True)
class Echo:
    """A prompt to be echoed: its text, empty unless requested, and its ids."""

    text: str
    ids: tuple[int, ...]


class GenerationStream(msgspec.Struct, eq=False):
    """Events of one generation. `answers_per_prompt` choices belong to each prompt, in order.

    A single choice without an echo may be marked `alone`: chunks may be fed to it directly, after
    the beginning, and this stream only has to know how many tokens were `cached`.
    """

    begin: Begin
    choices: Sequence[AnyStream]
    answers_per_prompt: int
    tokenizer: Tokenizer
    echoes: Sequence[Echo] = ()
    alone: AnyStream | None = None
    plain: PlainStream | None = None
    """The same one, where it is told as it is."""
    whole: WholeStream | None = None
    """The same one, where it is told to nobody: then `answer` has it in the end."""
    begun: bool = False
    """Whether its beginning is told; true of one that is told to nobody."""
    used: Usage | None = None
    """What was used, once it has ended well."""
    closed: bool = False
    """Whether it is over, well or not."""
    rows_due: bool = False
    """Whether the log probabilities of prompts were asked for: no answer begins before them."""
    cached: int = 0
    """How many ids of the first prompt an engine had cached; 0 as long as none said so."""
    image_tokens: int = 0
    """How many ids of its prompts stand for pictures."""

    # Made with the first thing that gets in: most stories have none.
    _echoed: set[int] | None = None
    """Choices whose prompt has been given back."""
    _prompt_logprobs: dict[int, tuple[TokenLogprob, ...]] | None = None
    _held: dict[int, list[Chunk]] | None = None
    """Chunks of choices whose prompt's log probabilities have not come: some engines send them last."""
    _cached: dict[int, int] | None = None
    """As `cached`, of each further prompt."""

    def feed(self, choice: int, chunk: Chunk, out: list[Event]) -> None:
        """Take a chunk of `choice` (counted over the whole request; `chunk.choice` is not looked at)."""
        if chunk.cached_tokens > 0:
            self._note_cached(choice // self.answers_per_prompt, chunk.cached_tokens)
        if not self.begun:
            self.start(out)
        if self.echoes and not self._echo(choice, chunk, out):
            return
        self.choices[choice].feed(chunk, out)

    def start(self, out: list[Event]) -> None:
        """Emit the beginning."""
        self.begun = True
        out.append(self.begin)

    def stream(self, choice: int) -> AnyStream:
        """Return the stream of one choice."""
        return self.choices[choice]

    def emitted(self, first: int, count: int) -> int:
        """Return how many ids `count` choices from `first` on have together."""
        return sum(len(stream.ids) for stream in self.choices[first : first + count])

    def conclude(self, first: int, count: int, out: list[Event]) -> None:
        """End those of `count` choices from `first` on that have all the ids they may have, because
        their call broke.
        """
        for choice in range(first, first + count):
            if self._held is not None:
                self._held.pop(choice, None)
            if not self.rows_due or (self._echoed is not None and choice in self._echoed):
                self.choices[choice].conclude(out)

    def over(self, first: int, count: int) -> bool:
        """Whether `count` choices from `first` on are all over."""
        if count == 1:
            return self.choices[first].over
        return all(stream.over for stream in self.choices[first : first + count])

    def cut_by_string(self, first: int, count: int) -> bool:
        """Whether a stop string ended one of these choices."""
        return any(stream.cut_by_string for stream in self.choices[first : first + count])

    def cut_by_call(self, first: int, count: int) -> bool:
        """Whether one of these choices ended with its only tool call."""
        return any(stream.cut_by_call for stream in self.choices[first : first + count])

    def generated(self) -> bool:
        """Whether there was any token yet."""
        return any(stream.generated for stream in self.choices)

    @property
    def tokens(self) -> int:
        """Number of tokens so far, of all choices."""
        return sum(stream.generated for stream in self.choices)

    @property
    def all_over(self) -> bool:
        """Whether every choice is over."""
        return all(stream.over for stream in self.choices)

    def cut(self, out: list[Event]) -> None:
        """End every choice that is not over, as one that has all the ids it may have."""
        if not self.begun:
            self.start(out)
        for stream in self.choices:
            stream.cut(out)

    def end(self, out: list[Event]) -> None:
        """Close a generation whose choices are all over."""
        assert not self.closed
        if not self.begun:
            self.start(out)
        used = self.usage()
        if self.image_tokens:
            used = replace(used, image_tokens=self.image_tokens)
        self.used = used
        out += (used, _END)
        self.closed = True

    def close(self) -> None:
        """End a silent generation whose answer is over."""
        whole, prompt, cached = self.whole, self.begin.prompt_tokens, self.cached
        assert whole is not None
        self.used = Usage(prompt, len(whole.ids), cached if cached < prompt else prompt)
        self.closed = True

    def answer(self) -> Answer:
        """Return the answer of a silent generation that is closed."""
        whole, used = self.whole, self.used
        assert whole is not None
        assert used is not None, "it has ended"
        return Answer(self.begin, [whole.answer()], used)

    def fail(self, error: SmgError, out: list[Event]) -> None:
        """End a generation that broke."""
        assert not self.closed
        if self.begun:
            for stream in self.choices:
                stream.abandon(out)
        out.append(Fail(error))
        self.closed = True

    def usage(self) -> Usage:
        """Return what was used so far."""
        prompt, cached, alone = self.begin.prompt_tokens, self.cached, self.alone
        if self._cached is not None:
            cached += sum(self._cached.values())
        if cached > prompt:
            cached = prompt
        if alone is not None:
            return Usage(prompt, len(alone.ids), cached, alone.reasoning_tokens)
        generated = reasoning = 0
        for stream in self.choices:
            generated += len(stream.ids)
            reasoning += stream.reasoning_tokens
        return Usage(prompt, generated, cached, reasoning)

    def notes(self) -> Mapping[str, int]:
        """Return irregularities of the model's output, with their counts."""
        found: dict[str, int] = {}
        for stream in self.choices:
            if not stream.notes:
                continue
            for what, count in stream.notes.items():
                found[what] = found.get(what, 0) + count
        return found

    def _note_cached(self, prompt: int, tokens: int) -> None:
        if not prompt:
            self.cached = max(self.cached, tokens)
            return
        cached = self._cached
        if cached is None:
            cached = self._cached = {}
        if tokens > cached.get(prompt, 0):
            cached[prompt] = tokens

    def _echo(self, choice: int, chunk: Chunk, out: list[Event]) -> bool:
        """Emit the prompt; False if its log probabilities are still to come, and the chunk waits.

        An engine may send them with one choice only, and as late as with the end of that.
        """
        if self._echoed is None:
            self._echoed, self._prompt_logprobs = set(), {}
        if choice in self._echoed:
            return True
        known = self._prompt_logprobs
        assert known is not None, "made with the choices that were given theirs"
        prompt = choice // self.answers_per_prompt
        if chunk.prompt_logprobs and prompt not in known:
            known[prompt] = self._rows_of(self.echoes[prompt], chunk.prompt_logprobs)
        if self.rows_due and prompt not in known:
            self._hold(choice, chunk)
            return False
        rows, held = known.get(prompt, ()), self._held or {}
        first = prompt * self.answers_per_prompt
        for other in range(first, first + self.answers_per_prompt):
            if other == choice or other in held:
                self._begin_choice(other, rows, held.pop(other, ()), out)
        return True

    def _begin_choice(
        self,
        choice: int,
        rows: tuple[TokenLogprob, ...],
        held: Sequence[Chunk],
        out: list[Event],
    ) -> None:
        assert self._echoed is not None, "made before"
        self._echoed.add(choice)
        echo = self.echoes[choice // self.answers_per_prompt]
        out.append(PromptEcho(choice, echo.text, echo.ids, rows))
        for chunk in held:
            self.choices[choice].feed(chunk, out)

    def _hold(self, choice: int, chunk: Chunk) -> None:
        """Keep a chunk for later; UPSTREAM_FAILED if there is no later."""
        if self._held is None:
            self._held = {}
        held, count = self._held, self.answers_per_prompt
        held.setdefault(choice, []).append(chunk)
        first = choice - choice % count
        together = [held.get(at, ()) for at in range(first, first + count)]
        if all(chunks and chunks[-1].finish is not None for chunks in together):
            raise missing_logprobs("the prompt")

    def _rows_of(self, echo: Echo, rows: Sequence[IdLogprob]) -> tuple[TokenLogprob, ...]:
        """Return a row for each of a prompt's ids. An engine may leave out the first, of which there is
        nothing to tell.
        """
        missing = len(echo.ids) - len(rows)
        if missing not in (0, 1):
            raise missing_logprobs("the prompt")
        whole = (IdLogprob(echo.ids[0], None), *rows) if missing else rows
        return tuple([spell_logprob(row, self.tokenizer) for row in whole])
