"""One request's way through the cluster: who was chosen for it and why, what broke, where it went on."""

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

Why: TypeAlias = Literal["first", "another", "retry", "continue", "target"]
"""The first call of a leg, a further leg of one request, again before a word was said, on from what was said,
or where the client wanted it."""
RATED_MAX: Final = 16
DROPPED_MAX: Final = 16
STEPS_MAX: Final = 256
"""A request may have 128 answers, each tried three times; what comes after that is only counted."""


@dataclass(frozen=True, slots=True)
class Rated:
    """One candidate: what it was expected to cost, in seconds, and what it need not compute, in tokens."""

    worker: str
    cost_s: float
    wait_s: float
    overlap: float


@dataclass(frozen=True, slots=True)
class Chosen:
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


@dataclass(frozen=True, slots=True)
class Broke:
    """An engine call ended before its answers were complete. `emitted`: tokens its answers had by then."""

    at_ms: int
    choice: int
    worker: str
    code: str
    message: str
    emitted: int = 0
    then: str = ""
    """What was done about it, in words."""


@dataclass(slots=True)
class Journey:
    """All that is told of one request. Times are wall-clock milliseconds."""

    request_id: str
    node: str
    dialect: str
    model: str
    began_ms: int
    steps: list[Chosen | Broke] = field(default_factory=list)
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

    def add(self, step: Chosen | Broke) -> None:
        """Note what happened next."""
        if len(self.steps) < STEPS_MAX:
            self.steps.append(step)
        else:
            self.more += 1
