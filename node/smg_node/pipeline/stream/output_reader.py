"""Output reader: sampling options and parser for the answers to one prompt.

Markers are mostly special tokens. So where a parser reads, the engine and our detokenizer keep
those, and the parser drops those that are none of its markers; the client's `skip_special_tokens`
decides about the rest. A format may also have tokens that end an answer and tell how: they are
requested as stop ids, and read.
"""

from typing import Final

from msgspec.structs import replace

from smg_node.core.errors import invalid
from smg_node.core.generation.request import ChatPrompt, Prompt, Sampling, TokenIds
from smg_node.parsers.reading.parser import Parser, Plain
from smg_node.parsers.reading.piece_writer import NewId
from smg_node.parsers.reading.scanner import Scanner
from smg_node.parsers.selection.model_formats import Expect, Printing
from smg_node.pipeline.stream.choice_stream import ChoiceStream
from smg_node.pipeline.stream.end_tokens import Ends
from smg_node.pipeline.stream.plain_choice import PlainStream, plain_stream
from smg_node.tokens.tokenizer import Tokenizer

PROMPT_TAIL: Final = 8
"""Ids before the answer that a detokenizer may look at, see `tokens.tokenizer`."""
TAIL_CHARACTERS: Final = 256
"""Characters of a prompt's end that show where an answer begins; more than any family's opening takes."""
_PLAIN: Final = Plain()
_NO_IDS: Final[frozenset[int]] = frozenset()


class OutputReader:
    """Reader of one prompt's answers. `ends` are ids that the parser reads at an answer's end;
    without `reads` there is none.

    Made for each prompt, and not changed but for the parser kept for the first answer.
    """

    __slots__ = (
        "_calls",
        "_continued",
        "_first",
        "_tail",
        "ends",
        "expect",
        "keep_special",
        "named",
        "new_id",
        "printing",
        "prompt",
        "reads",
        "thinks",
        "tokenizer",
    )

    def __init__(
        self,
        prompt: Prompt,
        text: str,
        printing: Printing,
        tokenizer: Tokenizer,
        new_id: NewId,
        *,
        ends: frozenset[int],
        keep_special: bool,
        expect: Expect,
        named: str,
    ) -> None:
        self.prompt = prompt
        self.printing = printing
        self.tokenizer = tokenizer
        self.new_id = new_id
        self.ends = ends
        self.keep_special = keep_special
        self.expect: Expect = expect
        self.named = named
        self._tail, self._continued = tail_of(prompt, text)
        self._calls = isinstance(prompt, ChatPrompt) and may_call(prompt)
        # Whether there is a parser is known when it is made, and the first answer takes that one.
        first = self.parser()
        self.reads = type(first) is not Plain
        self.thinks = isinstance(first, Scanner) and first.thinks
        self._first: Parser | None = first

    def asked(self, sampling: Sampling) -> Sampling:
        """Return `sampling` as it is sent to the engine.

        One that thinks is told no stop strings: it would look for them in its thought. And none is
        asked for no token at all; that one is dropped here.
        """
        if sampling.max_tokens == 0:
            sampling = replace(sampling, max_tokens=1)
        if not self.reads:
            return sampling
        more = sorted(self.ends.difference(sampling.stop_token_ids))
        return replace(
            sampling,
            skip_special_tokens=False,
            keep_stop=sampling.keep_stop or bool(self.ends),
            stop=() if self.thinks else sampling.stop,
            stop_token_ids=(*sampling.stop_token_ids, *more),
        )

    def stream(
        self,
        choice: int,
        sampling: Sampling,
        ids: TokenIds,
        ends: Ends,
        *,
        whole: bool = False,
        scored: bool = False,
    ) -> ChoiceStream | PlainStream:
        """Return the stream of answer `choice`, to the prompt `ids`, drawn with `sampling` and over
        at `ends`.

        `whole` answers are only read at their end; `scored` ones have a log probability for each id.
        """
        tokenizer, prompt = self.tokenizer, self.prompt
        parser, self._first = self._first, None
        detokenizer = tokenizer.detokenizer(
            prompt_tail=ids[-PROMPT_TAIL:],
            skip_special_tokens=sampling.skip_special_tokens and not self.reads,
            spaces_between_special_tokens=sampling.spaces_between_special_tokens,
        )
        if not (self.reads or sampling.stop or sampling.logprobs is not None):
            return plain_stream(choice, sampling, ends, detokenizer, whole=whole)
        return ChoiceStream(
            choice,
            sampling=sampling,
            ends=ends,
            tokenizer=tokenizer,
            detokenizer=detokenizer,
            parser=self.parser() if parser is None else parser,
            single=isinstance(prompt, ChatPrompt) and not prompt.choice.parallel,
            whole=whole,
            scored=scored,
        )

    def parser(self) -> Parser:
        """Return a new parser for one answer."""
        prompt = self.prompt
        if not isinstance(prompt, ChatPrompt):
            return _PLAIN
        return self.printing.scanner(
            tools=prompt.tools,
            calls=self._calls,
            tail=self._tail,
            new_id=self.new_id,
            expect=self.expect,
            named=self.named,
            continued=self._continued,
            keep_special=self.keep_special,
        )


def output_reader(
    prompt: Prompt,
    text: str,
    printing: Printing,
    sampling: Sampling,
    tokenizer: Tokenizer,
    new_id: NewId,
    *,
    expect: Expect = "native",
    named: str = "",
    stops: frozenset[int] = frozenset(),
) -> OutputReader:
    """Return the reader of answers to `prompt`, rendered as `text`.

    `stops` are ids that the format of its model reads at an answer's end. INVALID_REQUEST where the
    client asks the model to go on behind an end that its format needs.
    """
    joint = printing.joint if isinstance(prompt, ChatPrompt) else None
    if joint is not None and joint.stops and sampling.ignore_eos:
        raise invalid(
            f"ignore_eos is not possible with {printing.chosen.reasoning}: its messages end with such tokens",
            sampling.path("ignore_eos"),
        )
    return OutputReader(
        prompt,
        text,
        printing,
        tokenizer,
        new_id,
        ends=stops if joint is not None else _NO_IDS,
        keep_special=not sampling.skip_special_tokens,
        expect=expect,
        named=named,
    )


def bare_parser(printing: Printing, text: str, sampling: Sampling, new_id: NewId) -> Parser:
    """Return the parser of an answer to a chat without tools, rendered as `text`, that continues no
    message.
    """
    return printing.scanner(
        tools=(),
        calls=False,
        tail=text[-TAIL_CHARACTERS:],
        new_id=new_id,
        keep_special=not sampling.skip_special_tokens,
    )


def may_call(prompt: ChatPrompt) -> bool:
    """Whether an apparent tool call in the answer is one."""
    return bool(prompt.tools) and prompt.choice.mode != "none"


def tail_of(prompt: Prompt, text: str) -> tuple[str, bool]:
    """Return the text before the answer to a prompt rendered as `text`, and whether that is a
    message to continue.
    """
    said = _continued(prompt) if isinstance(prompt, ChatPrompt) else None
    return (text[-TAIL_CHARACTERS:], False) if said is None else (said, True)


def _continued(prompt: ChatPrompt) -> str | None:
    """Return the message text that the answer continues, None where it begins a message, or one
    without text yet.
    """
    if not prompt.continue_final_message or not prompt.turns:
        return None
    content = prompt.turns[-1].content
    if content is not None and not isinstance(content, str):
        content = "".join(getattr(part, "text", "") for part in content)
    return content or None
