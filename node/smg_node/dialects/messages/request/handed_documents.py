"""Handed documents: those of users' turns, kept apart for templates that want them beside the messages.

A reader knows no template. So each document stands in its turn as a framed text, and a template that takes
documents gets them apart, with the turns as they are without. All of them or none: a user who shows nothing
but documents would have a turn without content. What tools return stays with the result.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from smg_node.core.generation.request import HandedDocuments, Part
from smg_node.dialects.messages.request.blocks import Piece, content_of, is_blank


class DocumentCollector:
    """Collects the documents of a conversation, turn by turn."""

    def __init__(self) -> None:
        self._documents: list[Mapping[str, Any]] = []
        self._contents: list[tuple[int, str | tuple[Part, ...]]] = []
        self._all = True

    def add(
        self, place: int, pieces: Sequence[Piece], documents: Mapping[int, Mapping[str, Any]]
    ) -> None:
        """Take the documents of the turn at `place`, each with its index among the turn's pieces."""
        rest = content_of([piece for at, piece in enumerate(pieces) if at not in documents])
        self._documents += documents.values()
        self._contents.append((place, rest))
        self._all = self._all and not is_blank(rest)

    def shift(self, places: Sequence[int], counts: Sequence[int]) -> None:
        """Note that turns were put in at these places, which count up, and how many at each."""
        before = [0, *accumulate(counts)]
        self._contents = [
            (at + before[bisect_right(places, at)], rest) for at, rest in self._contents
        ]

    def handed(self) -> HandedDocuments | None:
        """Return what may be handed over; None for nothing."""
        if not self._documents or not self._all:
            return None
        return HandedDocuments(tuple(self._documents), tuple(self._contents))
