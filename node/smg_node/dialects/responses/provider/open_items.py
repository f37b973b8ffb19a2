"""Open items: what has been said of the items of a response, so that their ends say only what is missing. Pure."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Channel: TypeAlias = Literal["text", "refusal", "summary", "content", "arguments"]
"""A kind of text in an item. A thought has a summary or content; whichever speaks first is its text."""


@dataclass(slots=True)
class OpenItem:
    """An item of the output. `place` is its number in it."""

    place: int
    kind: str
    thought: Channel | None = None
    """Which of its two texts a thought is told by."""
    parts: set[tuple[Channel, int]] = field(default_factory=set)
    """Parts that said something."""
    over: bool = False

    def has_said(self, channel: Channel) -> bool:
        """Whether any part of this kind said something."""
        return any(one == channel for one, _ in self.parts)
