"""Choice: one answer of a request while it is generated.

A choice is a position in an answer that is known in advance, so its end and finish reason are known
when it begins. The engine moves `made` forward; messages follow it with `sent`.
"""

from collections.abc import Sequence
from enum import Enum, auto
from typing import Generic, Protocol, TypeVar

from smg_chaos.engine.pairs.handover import Handed
from smg_chaos.engine.protocol.answers import Answer
from smg_chaos.engine.protocol.generate_request import Asked
from smg_chaos.engine.protocol.response_writer import Ending, Spoken, Writer


class ChoiceCall(Protocol):
    """The call that a choice belongs to, as far as a scheduler reads and writes it."""

    asked: Asked
    writer: Writer
    handed: Handed | None
    """What another engine has computed of its prompt."""
    ready_s: float
    """When its prompt is computed."""


CallT = TypeVar("CallT", bound=ChoiceCall)


class State(Enum):
    """State of a choice."""

    WAITING = auto()
    PLACED = auto()
    OVER = auto()


class Choice(Generic[CallT]):
    """One of a request's answers.

    `end_at` is how many tokens it will have made when it ends. `hold_to` maps a number of tokens made
    to how many may be shown (None: all). `trimmed` is how many of the last ids stay out of messages.
    """

    __slots__ = (
        "answer",
        "blocks",
        "cached",
        "call",
        "due_s",
        "end_at",
        "ending",
        "filled",
        "first_shown",
        "hold_to",
        "index",
        "last_key",
        "last_start",
        "made",
        "room",
        "sent",
        "spoken",
        "state",
        "stored",
        "told",
        "trimmed",
    )

    def __init__(self, call: CallT, index: int, answer: Answer) -> None:
        self.call = call
        self.index = index
        self.answer = answer
        self.end_at = 0
        self.ending: Ending | None = None
        self.trimmed = 0
        self.hold_to: Sequence[int] | None = None
        self.state = State.WAITING
        self.made = 0
        self.sent = 0
        self.last_start = 0
        self.first_shown = False
        self.told = False
        self.spoken: Spoken | None = None
        # What the scheduler keeps with it.
        self.cached = 0
        self.blocks: list[int] = []
        self.filled = 0
        self.stored = 0
        self.last_key: int | None = None
        self.room = 0
        self.due_s = 0.0

    @property
    def over(self) -> bool:
        """Whether all its tokens are made."""
        return self.state is State.OVER

    def shown(self, group: int) -> int:
        """Return how many tokens may be in messages by now, if `group` of them share a chunk."""
        if self.over:
            return self.made
        if self.hold_to is not None:
            return self.hold_to[min(self.made, len(self.hold_to) - 1)]
        return self.made - self.made % group if group > 1 else self.made

    def visible(self, stop: int) -> int:
        """Return up to which position before `stop` ids may be printed."""
        return min(stop, self.made - self.trimmed) if self.over else stop
