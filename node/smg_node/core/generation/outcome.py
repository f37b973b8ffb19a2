"""Outcome of a generation: what telemetry, routing and history get when it is over."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from smg_node.core.generation.events import Usage

OutcomeKind: TypeAlias = Literal["ok", "client_gone", "refused", "failed"]


class Bill(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One call that a vendor has begun to answer, whatever became of it: so it is paid for.

    `model` is the vendor's name. `cost_pico` is in millionths of a millionth of the currency, None where nobody knows
    the price. `estimated`: the vendor did not come to say what was used, so it is counted by what came.
    """

    provider: str
    model: str
    used: Usage
    cost_pico: int | None = None
    estimated: bool = False


class Outcome(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One finished generation. A struct: made for every request, where a frozen dataclass of so many fields costs 2 µs.

    Times are seconds on the monotonic clock: `received_s` when the request came, `first_token_s` when
    its first token left the engine (None: there was none), `ended_s` at its end. `worker` is "" if
    none was chosen. `error_code` is the SmgError's code when it failed or was refused.
    """

    dialect: str
    model: str
    worker: str
    kind: OutcomeKind
    error_code: str
    status: int
    streamed: bool
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    received_s: float
    first_token_s: float | None
    ended_s: float
    attempts: int = 0
    """Engine calls, of the leg that took the most."""
    continuations: int = 0
    """Answers that went on at another worker after their first token."""
    oddities: Mapping[str, int] = msgspec.field(default_factory=dict)
    """What was odd about what the model printed, and how often."""
    tenant: str = ""
    """Whose key it was; "" where none was needed."""
    key_id: str = ""
    """Which one."""
    ended_ms: int = 0
    """`ended_s` in wall-clock milliseconds; 0 where nobody said."""
    bills: tuple[Bill, ...] = ()
    """What vendors take for it: of each call that one has begun to answer. Empty where only engines worked."""
    split: str = ""
    """The split of its route and its side of it: `eu/in`; "" where there is none."""
    passes: int = 0
    """Passes of its model where that may call tools of this side, 0 where it may not."""
    pass_tokens: tuple[tuple[int, int, int], ...] = ()
    """Of several passes: tokens of the prompt, of its cached part, and of the answer of each that engines here were paid for."""
    paused_s: float = 0.0
    """How long its model did not speak between its first token and the end, because tools ran."""

    @property
    def is_paid(self) -> bool:
        """Whether what engines did for it costs its client anything."""
        if self.kind == "ok" or self.completion_tokens:
            return self.kind != "refused"
        return self.kind == "client_gone" and self.attempts > 0

    def ttft_s(self) -> float | None:
        """Return seconds to the first token, or None."""
        return None if self.first_token_s is None else self.first_token_s - self.received_s
