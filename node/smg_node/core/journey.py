"""One request's way through the cluster: who was chosen for it and why, what broke, where it went on.

These are msgspec structs: a decision makes up to 16 of them, and one takes 0.05 µs where a frozen dataclass
takes 0.5. They travel and rest as arrays, so that a field may only be added at the end, with a default.
"""

from typing import Final, Literal, TypeAlias

import msgspec

Why: TypeAlias = Literal["first", "another", "retry", "continue", "target"]
"""The first call of a leg, a further leg of one request, again before a word was said, on from what was said,
or where the client wanted it."""
RATED_MAX: Final = 16
DROPPED_MAX: Final = 16
STEPS_MAX: Final = 256
"""A request may have 128 answers, each tried three times; what comes after that is only counted."""


class Rated(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One candidate: what it was expected to cost, in seconds, and what it need not compute, in tokens."""

    worker: str
    cost_s: float
    wait_s: float
    overlap: float


class Chosen(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=1):
    """A worker was chosen. The best candidates come first; `of` is how many there were.

    `dropped` are workers of the model that were none, each with the reason.
    """

    at_ms: int
    choice: int
    """The first answer of the engine call."""
    why: Why
    worker: str
    policy: str
    of: int
    rated: tuple[Rated, ...] = ()
    dropped: tuple[tuple[str, str], ...] = ()
    waited_ms: int = 0
    key: bool = False
    """Whether a routing key decided."""
    prompt_tokens: int = 0


class Broke(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=2):
    """An engine call ended before its answers were complete. `emitted`: tokens its answers had by then."""

    at_ms: int
    choice: int
    worker: str
    code: str
    message: str
    emitted: int = 0
    then: str = ""
    """What was done about it, in words."""


class Journey(msgspec.Struct, array_like=True):
    """All that is told of one request. Times are wall-clock milliseconds."""

    request_id: str
    node: str
    dialect: str
    model: str
    began_ms: int
    steps: list[Chosen | Broke] = msgspec.field(default_factory=list)
    more: int = 0
    """Steps that were not kept."""
    ended_ms: int | None = None
    kind: str = ""
    """How it ended, as in `Outcome.kind`; "" while it goes on."""
    code: str = ""
    status: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    ttft_ms: int | None = None
    answer: str = ""
    """The id of the answer itself, without the prefix that its dialect gives it; "" while there is none."""
    unplaced: tuple[tuple[str, str], ...] = ()
    """If no worker could be had in the end: those of the model, each with the reason, at most 16."""

    def add(self, step: Chosen | Broke) -> None:
        """Note what happened next."""
        if len(self.steps) < STEPS_MAX:
            self.steps.append(step)
        else:
            self.more += 1
