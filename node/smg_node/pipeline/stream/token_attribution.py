"""Token attribution: a choice's parsed pieces, and which of its tokens belong to each. Pure.

A token belongs to the piece that has its first character. Tokens of markers belong to none: their
log probabilities are dropped, and they do not count as reasoning tokens. So text goes to the parser
a token at a time; while the parser holds text, its tokens wait, until the text is emitted or turns
out to be a marker.

Where log probabilities are wanted and a marker may stand, text goes to the parser a character at a
time: then each step emits all that it let go, or drops all of it, and so tells of every token.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast

from smg_node.core.generation.events import TokenLogprob
from smg_node.core.generation.pieces import Arguments, Call, Piece, Reasoning
from smg_node.parsers.reading.parser import Parser
from smg_node.parsers.reading.scanner import Scanner
from smg_node.parsers.reading.text_reader import Reader

Rows: TypeAlias = Mapping[int, Sequence[TokenLogprob]]
"""Log probabilities by the number of the piece that their tokens belong to."""
NO_ROWS: Final[Rows] = MappingProxyType({})


class TokenAttribution:
    """Attribution of one choice, with its parser. With `single` nothing is emitted after the first
    complete call.
    """

    __slots__ = (
        "_fed",
        "_fresh_tokens",
        "_held_tokens",
        "_parser",
        "_pieces",
        "_rows",
        "_single",
        "_waiting",
        "called",
        "complete",
        "reader",
        "reasoning_tokens",
        "rest",
    )

    def __init__(self, parser: Parser, *, single: bool = False) -> None:
        self._parser = parser
        self._single = single
        self.reader = parser.reader if isinstance(parser, Scanner) else None
        """Shows while all text is of one kind; None where it always is."""
        self._pieces: list[Piece] = []
        self._rows: dict[int, list[TokenLogprob]] = {}
        # Tokens that began since the last text, and tokens of text that the parser holds.
        self._fresh_tokens = self._held_tokens = 0
        # Characters fed so far, and log probabilities of which it is not known whose they are, each with
        # how many characters were before its token.
        self._fed = 0
        self._waiting: list[tuple[int, TokenLogprob]] = []
        self.rest: Sequence[TokenLogprob] = ()
        """Log probabilities of tokens behind all text; only of an answer without a parser."""
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
            self._waiting.append((self._fed, logprob))

    def feed(self, text: str) -> None:
        """Feed more text to the parser."""
        if not text:
            return
        reader = self.reader
        if reader is None or not self._waiting or _is_calm(reader, text):
            self._step(text)
        else:
            for character in text:
                self._step(character)
        if self._single and reader is not None and reader.out.closed:
            self.complete = True

    def finish(self) -> None:
        """Tell the parser that no more text comes."""
        self._hear(self._parser.finish())
        if self.reader is None:
            # Without markers every token was drawn to be shown, also one that prints nothing.
            self.rest = [logprob for _, logprob in self._waiting]
            self._waiting = []

    def take(self) -> tuple[Sequence[Piece], Rows]:
        """Return the pieces since the last call, neighbours of one kind joined, each with its
        tokens.
        """
        pieces = self._pieces
        if not pieces:
            return pieces, NO_ROWS
        rows: Rows = NO_ROWS
        if self._rows:
            rows, self._rows = self._rows, {}
        self._pieces = []
        return _joined(pieces, rows) if len(pieces) > 1 else (pieces, rows)

    def _step(self, text: str) -> None:
        self._fed += len(text)
        self._hear(self._parser.feed(text))

    def _hear(self, pieces: Sequence[Piece]) -> None:
        if self._waiting:
            self._settle(pieces)
        if pieces:
            if type(pieces[0]) is Reasoning:
                self.reasoning_tokens += self._held_tokens + self._fresh_tokens
            self._held_tokens = 0
            self._add(pieces)
        elif self.reader is not None and self.reader.holds:
            self._held_tokens += self._fresh_tokens
        else:
            self._held_tokens = 0
        if self.reader is not None or pieces:
            self._fresh_tokens = 0

    def _settle(self, pieces: Sequence[Piece]) -> None:
        """Give the log probabilities of what the parser has let go to the pieces that it became."""
        reader = self.reader
        let_go = self._fed if reader is None else self._fed - reader.unread
        if not pieces and (reader is None or reader.holds):
            # Of text that is still held, or blank text that a call may yet make layout.
            return
        waiting = self._waiting
        size = sum([len(piece.text) for piece in pieces if not isinstance(piece, Call)])
        self._waiting = [each for each in waiting if each[0] >= let_go]
        for at, logprob in waiting:
            number = _piece_at(pieces, at - (let_go - size)) if at < let_go else -1
            if number >= 0 and not self.complete:
                self._rows.setdefault(len(self._pieces) + number, []).append(logprob)

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


def _is_calm(reader: Reader, text: str) -> bool:
    """Whether all of `text` is of one kind, and nothing before it is held."""
    calm = reader.calm
    return calm is not None and calm[1](text) is None


def _piece_at(pieces: Sequence[Piece], at: int) -> int:
    """Return which of the pieces has character `at` of their text; -1 if none has."""
    if at < 0:
        return -1
    end = 0
    for number, piece in enumerate(pieces):
        if isinstance(piece, Call):
            continue
        end += len(piece.text)
        if at < end:
            return number
    return -1


def _joined(pieces: Sequence[Piece], rows: Rows) -> tuple[Sequence[Piece], Rows]:
    out: list[Piece] = []
    shown: dict[int, Sequence[TokenLogprob]] = {}
    start = 0
    for kind, group in groupby(pieces, type):
        run = list(group)
        end = start + len(run)
        found = [row for at in range(start, end) for row in rows.get(at, ())] if rows else []
        start = end
        if found:
            shown[len(out)] = found
        if len(run) == 1 or kind is Call:
            out += run
        else:
            texts = [piece.text for piece in run if not isinstance(piece, Call)]
            out.append(cast(Any, kind)("".join(texts)))
    return out, shown
