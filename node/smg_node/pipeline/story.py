"""All choices of one generation, told as one stream of events. Pure.

Begin comes with the first chunk (or with the end, if there was none), a prompt that is to be echoed
comes before its choice's first block, chunks go to their choices, and when every choice is over: Usage
and End. A failure closes what is open and says Fail; nothing follows it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from smg_node.core.errors import SmgError
from smg_node.core.events import Begin, End, Event, Fail, PromptEcho, TokenLogprob, Usage
from smg_node.engines.chunk import Chunk
from smg_node.pipeline.spelling import spell_logprob
from smg_node.pipeline.stream import ChoiceStream
from smg_node.tokens.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Echo:
    """A prompt to give back: its text, empty unless asked for, and its ids."""

    text: str
    ids: tuple[int, ...]


class Story:
    """Tells one generation. `answers_per_prompt` choices belong to each prompt, in order."""

    def __init__(
        self,
        begin: Begin,
        choices: Sequence[ChoiceStream],
        *,
        answers_per_prompt: int,
        tokenizer: Tokenizer,
        echoes: Sequence[Echo] = (),
    ) -> None:
        assert len(choices) % answers_per_prompt == 0
        assert len(echoes) in (0, len(choices) // answers_per_prompt)
        self._begin = begin
        self._choices = choices
        self._answers_per_prompt = answers_per_prompt
        self._tokenizer = tokenizer
        self._echoes = echoes
        self._echoed = [not echoes] * len(choices)
        self._prompt_logprobs: dict[int, tuple[TokenLogprob, ...]] = {}
        self._cached = [0] * (len(choices) // answers_per_prompt)
        self._begun = False
        self.closed = False

    def feed(self, choice: int, chunk: Chunk, out: list[Event]) -> None:
        """Take a chunk of `choice` (counted over the whole request; `chunk.choice` is not looked at)."""
        if not self._begun:
            self._start(out)
        if not self._echoed[choice]:
            self._echo(choice, chunk, out)
        if chunk.cached_tokens > 0:
            prompt = choice // self._answers_per_prompt
            if chunk.cached_tokens > self._cached[prompt]:
                self._cached[prompt] = chunk.cached_tokens
        self._choices[choice].feed(chunk, out)

    @property
    def id(self) -> str:
        """The id of the answer, without a dialect's prefix."""
        return self._begin.id

    def stream(self, choice: int) -> ChoiceStream:
        """Return the stream of one choice."""
        return self._choices[choice]

    def emitted(self, first: int, count: int) -> int:
        """Return how many ids `count` choices from `first` on have together."""
        return sum(len(stream.ids) for stream in self._choices[first : first + count])

    def conclude(self, first: int, count: int, out: list[Event]) -> None:
        """End those of `count` choices from `first` on that have all the ids they may have."""
        for stream in self._choices[first : first + count]:
            stream.conclude(out)

    def over(self, first: int, count: int) -> bool:
        """Whether `count` choices from `first` on are all over."""
        if count == 1:
            return self._choices[first].over
        return all(stream.over for stream in self._choices[first : first + count])

    def cut_by_string(self, first: int, count: int) -> bool:
        """Whether a stop string ended one of these choices."""
        return any(stream.cut_by_string for stream in self._choices[first : first + count])

    def cut_by_call(self, first: int, count: int) -> bool:
        """Whether one of these choices was over with its only call."""
        return any(stream.cut_by_call for stream in self._choices[first : first + count])

    def generated(self) -> bool:
        """Whether there was any token yet."""
        return any(stream.generated for stream in self._choices)

    @property
    def tokens(self) -> int:
        """How many tokens there are so far, of all choices."""
        return sum(stream.generated for stream in self._choices)

    @property
    def all_over(self) -> bool:
        """Whether every choice is over."""
        return all(stream.over for stream in self._choices)

    def cut(self, out: list[Event]) -> None:
        """End every choice that is not over, as one that has all the ids it may have."""
        if not self._begun:
            self._start(out)
        for stream in self._choices:
            stream.cut(out)

    def end(self, out: list[Event]) -> None:
        """Close a generation whose choices are all over."""
        assert not self.closed
        if not self._begun:
            self._start(out)
        out.append(self.usage())
        out.append(End())
        self.closed = True

    def fail(self, error: SmgError, out: list[Event]) -> None:
        """Close a generation that broke."""
        assert not self.closed
        if self._begun:
            for stream in self._choices:
                stream.abandon(out)
        out.append(Fail(error))
        self.closed = True

    def usage(self) -> Usage:
        """Return what was used so far."""
        generated = reasoning = 0
        for stream in self._choices:
            generated += stream.generated
            reasoning += stream.reasoning_tokens
        prompt = self._begin.prompt_tokens
        return Usage(prompt, generated, min(sum(self._cached), prompt), reasoning)

    def notes(self) -> Mapping[str, int]:
        """Return what was odd about what the model printed, and how often."""
        found: dict[str, int] = {}
        for stream in self._choices:
            for what, count in stream.notes.items():
                found[what] = found.get(what, 0) + count
        return found

    def _start(self, out: list[Event]) -> None:
        self._begun = True
        out.append(self._begin)

    def _echo(self, choice: int, chunk: Chunk, out: list[Event]) -> None:
        """Give the prompt back. An engine may send a prompt's log probabilities with one choice only."""
        self._echoed[choice] = True
        prompt = choice // self._answers_per_prompt
        if chunk.prompt_logprobs:
            self._prompt_logprobs[prompt] = tuple(
                spell_logprob(logprob, self._tokenizer) for logprob in chunk.prompt_logprobs
            )
        echo = self._echoes[prompt]
        logprobs = self._prompt_logprobs.get(prompt, ())
        out.append(PromptEcho(choice, echo.text, echo.ids, logprobs))
