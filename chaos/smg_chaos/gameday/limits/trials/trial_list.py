"""Trial list: the trials by name, and playing some of them, one after the other."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from smg_chaos.gameday.limits.definition import Definer
from smg_chaos.gameday.limits.scene import Scene
from smg_chaos.gameday.limits.trials.one_client import one_client
from smg_chaos.gameday.limits.trials.short_asking import burst, paced, two_nodes
from smg_chaos.gameday.limits.trials.trial import Trial
from smg_chaos.statistics import Figure

ALL: Final = "all"
WINDOW_S: Final = 60
QUICK_WINDOW_S: Final = 20
"""Long enough that what stands with the nodes comes to them bit by bit, as in a minute."""
WINDOW_MIN_S: Final = 10
NODES_MIN: Final = 3
TRIALS: Final[Mapping[str, Callable[[Trial], Awaitable[list[Figure]]]]] = {
    "paced": paced,
    "burst": burst,
    "two-nodes": two_nodes,
    "one-client": one_client,
}
"""In this order: the first one finds a limit that nobody has used, and the last one has the smallest."""


def chosen(names: Sequence[str], window_s: int = 0) -> list[str]:
    """Return the names of the trials to play, in their order; ValueError for one that is none, and
    for windows (0: the trials' own) that are too short.
    """
    if 0 < window_s < WINDOW_MIN_S:
        raise ValueError(f"windows of trials last {WINDOW_MIN_S} s or more, not {window_s}")
    for name in names:
        if name != ALL and name not in TRIALS:
            raise ValueError(
                f"no trial of limits is called {name!r}; there are {', '.join(TRIALS)}"
            )
    return [name for name in TRIALS if ALL in names or name in names]


async def play_trials(
    scene: Scene, definer: Definer, names: Sequence[str], *, window_s: int, mode: str
) -> list[Figure]:
    """Play these trials under limits in windows of that length; return their figures.

    They begin in the first window that all nodes live through: in the one that they start in, what
    stands with them is not whole.
    """
    trial = Trial(scene, definer, window_us=window_s * 1_000_000, mode=mode)
    await trial.border()
    figures: list[Figure] = []
    for name in chosen(names):
        began_us = scene.now_us()
        figures += await TRIALS[name](trial)
        scene.closed(name, began_us)
    return figures
