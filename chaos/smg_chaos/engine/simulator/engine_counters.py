"""Engine counters of requests, ends and tokens: they tell an engine's losses from a gateway's."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    """Counters of one engine.

    `cut`: a fault, a death or a partner ended it. `handed_over`, `taken_over`: prompts that
    partners fetched from it, and that it fetched from them. `pictures` it saw; `media_mistakes` is what was wrong with
    requests that had some, whether it was refused or believed; `shared` tensors it read in shared memory. `encoded` pictures
    it made for others, `received` came from others.
    """

    requests: int = 0
    finished: int = 0
    aborted: int = 0
    cancelled: int = 0
    refused: int = 0
    cut: int = 0
    handed_over: int = 0
    taken_over: int = 0
    tokens: int = 0
    pictures: int = 0
    media_mistakes: int = 0
    shared: int = 0
    encoded: int = 0
    received: int = 0
    faults: dict[str, int] = field(default_factory=dict)
