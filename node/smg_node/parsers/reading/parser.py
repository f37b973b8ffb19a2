"""Parser: interface of model-output parsers: text in, pieces out, in any chunking."""

from collections.abc import Sequence
from typing import Protocol

from smg_node.core.generation.pieces import Piece, Text


class Parser(Protocol):
    """Reads one choice's text. The pieces, joined by kind, do not depend on how the text was cut."""

    def feed(self, text: str) -> Sequence[Piece]:
        """Take more text; return the pieces that are certain now."""
        ...

    def finish(self) -> Sequence[Piece]:
        """Return what was held; called once, also after an abort, and nothing is fed afterwards."""
        ...


class Plain:
    """Everything is text: the parser of a model without reasoning or tool markers."""

    def feed(self, text: str) -> Sequence[Piece]:
        """Return `text` as one piece, or nothing for the empty string."""
        return (Text(text),) if text else ()

    def finish(self) -> Sequence[Piece]:
        """Return nothing: nothing is ever held."""
        return ()
