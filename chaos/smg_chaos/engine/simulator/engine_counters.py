"""What a simulated engine counts of itself, so that a checker can tell its losses from a gateway's."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    """What an engine lived through, counted by itself.

    `cut`: a fault, a death or a partner ended it. `handed_over`, `taken_over`: what partners fetched of it, and it
    of them.
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
    faults: dict[str, int] = field(default_factory=dict)
