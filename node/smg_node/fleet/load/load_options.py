"""Load options: weights and defaults that turn a worker's load figures into costs and limits."""

from dataclasses import dataclass
from typing import Final

PREFILL_RATE: Final = 8_000.0
"""Prompt tokens a second, where nothing was measured yet."""
ENCODER_RATE: Final = 20_000.0
"""Tokens of pictures a second, where nothing was measured yet: an encoder is a fraction of its model."""
CAPACITY: Final = 64
"""Requests at once, where the engine does not say."""
REQUEST_S: Final = 10.0
"""Seconds of a request, where none has ended yet."""


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Weights and limits of load figures; see the knobs of `routing`.

    `pressure_weight_s` and `busy_weight_s` are what a worker costs with half of its KV memory in use, and with
    all its slots taken. It is overloaded from `waiting_max` waiting requests a rank or `kv_max` of its memory
    on, and full with `backlog_max` requests more than it runs at once.
    """

    prefill_rate: float = PREFILL_RATE
    pressure_weight_s: float = 0.15
    busy_weight_s: float = 1.0
    waiting_max: int = 8
    kv_max: float = 0.8
    backlog_max: int = 8
    encoder_rate: float = ENCODER_RATE


DEFAULT: Final = LoadOptions()
