"""Token attribution: a choice's parsed pieces, and which of its tokens belong to each. Pure.

A token belongs to the piece that has its first character. Tokens of markers belong to none: their
log probabilities are dropped, and they do not count as reasoning tokens. So text goes to the parser
a token at a time; while the parser holds text, its tokens wait, until the text is emitted or turns
out to be a marker.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, cast

from smg_node.core.generation.events import TokenLogprob
from smg_node.core.generation.pieces import Arguments, Call, Piece, Reasoning
from smg_node.parsers.reading.parser import Parser
from smg_node.parsers.reading.scanner import Scanner


class TokenAttribution:
    """Attribution of one choice, with its parser. With `single` nothing is emitted after the first
    complete call.
    """

    __slots__ = (
        "_before_arguments",
        "_fresh_logprobs",
        "_fresh_tokens",
        "_held_logprobs",
        "_held_tokens",
        "_logprobs",
        "_parser",
        "_pieces",
        "_single",
        "called",
        "complete",
        "reader",
        "reasoning_tokens",
    )

    def __init__(self, parser: Parser, *, single: bool = False) -> None:
        self._parser = parser
        self._single = single
        self.reader = parser.reader if isinstance(parser, Scanner) else None
        """Shows while all text is of one kind; None where it always is."""
        self._pieces: list[Piece] = []
        self._logprobs: list[TokenLogprob] = []
        # Tokens that began since the last text, and tokens of text that the parser holds.
        self._fresh_tokens = self._held_tokens = 0
        self._fresh_logprobs: list[TokenLogprob] = []
        self._held_logprobs: list[TokenLogprob] = []
        # Between a call's name and its arguments there is only markup.
        self._before_arguments = False
        self.called = False
        """Whether there was a call."""
        self.complete = False
        """Whether nothing more is said, because one call was all that may be."""
        self.reasoning_tokens = 0

    def tokens(self, count: int) -> None:
        """Note that this many tokens begin with the next text."""
        self._fresh_tokens += count

    def token(self, logprob: TokenLogprob | None) -> None:
        """Note that a token begins with the next text."""
        self._fresh_tokens += 1
        if logprob is not None:
            self._fresh_logprobs.append(logprob)

    def feed(self, text: str) -> None:
        """Feed more text to the parser."""
        if text:
            self._hear(self._parser.feed(text))
            if self._single and self.reader is not None and self.reader.out.closed:
                self.complete = True

    def finish(self) -> None:
        """Tell the parser that no more text comes."""
        self._hear(self._parser.finish())
        if self.reader is None:
            # Without markers every token was drawn to be shown, also one that prints nothing.
            self._logprobs += self._fresh_logprobs
            self._fresh_logprobs = []

    def take(self) -> tuple[Sequence[Piece], Sequence[TokenLogprob]]:
        """Return the pieces since the last call, neighbours of one kind joined, each with its
        tokens.
        """
        pieces, logprobs = self._pieces, self._logprobs
        if logprobs:
            self._logprobs = []
        if len(pieces) > 1:
            pieces = _joined(pieces)
        if pieces:
            self._pieces = []
        return pieces, logprobs

    def _hear(self, pieces: Sequence[Piece]) -> None:
        if pieces:
            self._own(pieces)
            self._add(pieces)
        elif self.reader is not None and self.reader.holds:
            self._held_tokens += self._fresh_tokens
            self._held_logprobs += self._fresh_logprobs
        else:
            self._held_tokens, self._held_logprobs = 0, []
        if self.reader is not None:
            self._fresh_tokens, self._fresh_logprobs = 0, []

    def _own(self, pieces: Sequence[Piece]) -> None:
        """Assign the waiting tokens, and those that began with this text, to pieces or to none."""
        first = type(pieces[0])
        if first is Reasoning:
            self.reasoning_tokens += self._held_tokens + self._fresh_tokens
        if first is not Call and not self._before_arguments:
            self._logprobs += self._held_logprobs
        self._before_arguments = type(pieces[-1]) is Call
        if self._fresh_logprobs and any(type(piece) is not Call for piece in pieces):
            self._logprobs += self._fresh_logprobs
        self._held_tokens, self._held_logprobs = 0, []
        self._fresh_tokens, self._fresh_logprobs = 0, []

    def _add(self, pieces: Sequence[Piece]) -> None:
        if not self._single:
            self._pieces += pieces
            if not self.called:
                self.called = any(type(piece) is Call for piece in pieces)
            return
        for piece in pieces:
            if self.called and type(piece) is not Arguments:
                self.complete = True
            if self.complete:
                return
            self.called = type(piece) is Call or self.called
            self._pieces.append(piece)


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    out: list[Piece] = []
    for kind, group in groupby(pieces, type):
        run = list(group)
        if len(run) == 1 or kind is Call:
            out += run
        else:
            texts = [piece.text for piece in run if not isinstance(piece, Call)]
            out.append(cast(Any, kind)("".join(texts)))
    return out
