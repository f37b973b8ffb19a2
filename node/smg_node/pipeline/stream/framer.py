"""Framer: turns pieces into blocks of events; every block that starts is ended, also on failure.

A framer belongs to one choice. It opens a block when the kind of piece changes, and closes it when
the next kind, the end or a failure comes, so presenters need no bookkeeping for errors. Token
counts, ids and log probabilities ride on the next delta; what no delta could carry (the tokens of a
marker, the end-of-text token) is left to `rest`.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from smg_node.core.generation.events import (
    BlockEnd,
    BlockKind,
    BlockStart,
    Delta,
    Event,
    Finish,
    FinishReason,
    TokenLogprob,
)
from smg_node.core.generation.pieces import Arguments, Call, Piece, Reasoning, Text
from smg_node.pipeline.stream.token_attribution import NO_ROWS, Rows

_decode: Final = msgspec.json.Decoder().decode


class Framer:
    """Builds the events of one choice."""

    __slots__ = ("_block", "_call_id", "_choice", "_kind", "_name", "_texts")

    def __init__(self, choice: int) -> None:
        self._choice = choice
        self._block = -1
        self._kind: BlockKind | None = None
        self._name = ""
        self._call_id = ""
        self._texts: list[str] = []

    def text(
        self,
        out: list[Event],
        text: str,
        tokens: int,
        ids: tuple[int, ...],
        kind: BlockKind = "text",
    ) -> None:
        """Append text that is of one kind and has no markers to `out`; the hot path."""
        if self._kind != kind:
            assert kind != "call", "arguments follow a call"
            self._open(out, kind)
        self._texts.append(text)
        out.append(Delta(self._choice, self._block, text, tokens, (), ids))

    def run(
        self, out: list[Event], texts: Sequence[str], ids: Sequence[int], kind: BlockKind
    ) -> None:
        """Append the texts of single tokens, each a delta of its own, as `text` would."""
        if self._kind != kind:
            assert kind != "call", "arguments follow a call"
            self._open(out, kind)
        self._texts += texts
        choice, block = self._choice, self._block
        out += [
            Delta(choice, block, text, 1, (), (token_id,))
            for text, token_id in zip(texts, ids, strict=True)
        ]

    def pieces(
        self,
        out: list[Event],
        pieces: Sequence[Piece],
        tokens: int,
        ids: tuple[int, ...],
        rows: Rows = NO_ROWS,
    ) -> bool:
        """Append the events of `pieces`, each with its `rows` of log probabilities; counts ride on
        the first delta.

        Returns whether a delta carried them; if not, the caller keeps them for the next time.
        """
        carried = False
        for number, piece in enumerate(pieces):
            if isinstance(piece, Call):
                self._close(out)
                self._open(out, "call", piece.name, piece.call_id)
                continue
            kind = _kind(piece)
            if self._kind != kind:
                assert kind != "call", "arguments follow a call"
                self._open(out, kind)
            self._texts.append(piece.text)
            logprobs = tuple(rows.get(number, ())) if rows else ()
            if carried:
                out.append(Delta(self._choice, self._block, piece.text, 0, logprobs))
            else:
                out.append(Delta(self._choice, self._block, piece.text, tokens, logprobs, ids))
                carried = True
        return carried

    @property
    def has_whole_call(self) -> bool:
        """Whether a call is open whose arguments are a whole object."""
        if self._kind != "call":
            return False
        try:
            return isinstance(_decode("".join(self._texts)), dict)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            return False

    def rest(
        self,
        out: list[Event],
        tokens: int,
        ids: tuple[int, ...],
        logprobs: tuple[TokenLogprob, ...] = (),
    ) -> None:
        """Emit counts that no text carried, as an empty delta of the open block, if there is one.

        Without an open block a text block is opened only when there are log probabilities or ids to
        show: a client that asked for them gets every one.
        """
        if not (tokens or ids or logprobs):
            return
        if self._kind is None:
            self._open(out, "text")
        out.append(Delta(self._choice, self._block, "", tokens, logprobs, ids))

    def finish(self, out: list[Event], reason: FinishReason, matched: str | int | None) -> None:
        """End the open block and the choice."""
        self._close(out)
        out.append(Finish(self._choice, reason, matched))

    def abandon(self, out: list[Event]) -> None:
        """End the open block because the generation broke; the choice does not finish."""
        self._close(out)

    def _open(self, out: list[Event], kind: BlockKind, name: str = "", call_id: str = "") -> None:
        self._close(out)
        self._block += 1
        self._kind, self._name, self._call_id = kind, name, call_id
        out.append(BlockStart(self._choice, self._block, kind, name, call_id))

    def _close(self, out: list[Event]) -> None:
        if self._kind is None:
            return
        whole = "".join(self._texts)
        out.append(
            BlockEnd(self._choice, self._block, self._kind, whole, self._name, self._call_id)
        )
        self._kind = None
        self._texts = []


def _kind(piece: Text | Reasoning | Arguments) -> BlockKind:
    if isinstance(piece, Text):
        return "text"
    return "reasoning" if isinstance(piece, Reasoning) else "call"
