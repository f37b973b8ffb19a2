"""Hint store interface: the front of an index, into which hints of peers are put."""

from collections.abc import Sequence
from typing import Protocol


class HintStore(Protocol):
    """Index into which hints are put. What it forgets by itself is its own business."""

    def add(self, owner: str, subject: str, hashes: Sequence[int]) -> None:
        """Take hints in."""
        ...

    def remove(self, owner: str, subject: str, hashes: Sequence[int]) -> None:
        """Drop hints that are there."""
        ...

    def mention(self, owner: str, subject: str, hashes: Sequence[int]) -> None:
        """Take guesses in, which no later message takes back."""
        ...

    def replace(self, owner: str, subject: str, hashes: Sequence[int]) -> None:
        """Drop what this owner said about the subject, and take these in."""
        ...

    def drop(self, owner: str, subject: str) -> None:
        """Drop what this owner said about the subject: it is not so."""
        ...

    def doubt(self, owner: str, subject: str) -> None:
        """Take what this owner said about the subject for a guess: it is gone, or does not know any more."""
        ...
