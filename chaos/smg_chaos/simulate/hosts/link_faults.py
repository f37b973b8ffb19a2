"""Link faults: loss, duplicates, reordering, delay and blocks on some directed links.

Several may hold at once: losses combine as independent chances, delays add up, one block blocks. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rough:
    """The fault of links from `sources` to `targets`; an empty tuple means all hosts."""

    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    both_ways: bool = False
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    delay_us: int = 0
    jitter_us: int = 0
    block: bool = False

    def holds(self, source: str, target: str) -> bool:
        """Return whether it holds from `source` to `target`, which are labels of hosts."""
        return self._covers(source, target) or (self.both_ways and self._covers(target, source))

    def _covers(self, source: str, target: str) -> bool:
        return (not self.sources or source in self.sources) and (
            not self.targets or target in self.targets
        )


def combined(held: Sequence[Rough]) -> Rough:
    """Return what several rules mean together for a link on which all of them hold."""

    def either(chances: Sequence[float]) -> float:
        spared = 1.0
        for one in chances:
            spared *= 1.0 - one
        return 1.0 - spared

    return Rough(
        loss=either([one.loss for one in held]),
        duplicate=either([one.duplicate for one in held]),
        reorder=either([one.reorder for one in held]),
        delay_us=sum(one.delay_us for one in held),
        jitter_us=sum(one.jitter_us for one in held),
        block=any(one.block for one in held),
    )
