"""One client at one node: asks for the whole limit at the beginning of a window, and obeys
`Retry-After`.

Four windows of its own. In the first the client, at a node that does not own the limit, asks for all
of it at once, and what is refused comes back when told, into the second window, where it asks for
the rest of another limit. In the third it asks again for all of it and then on and on, without
waiting, so that there is no doubt when the next admission was possible. Then it is gone, and another
one asks the owner for all of a window.
"""

from typing import Final

from smg_chaos.gameday.limits.story import Record
from smg_chaos.gameday.limits.trials import goals
from smg_chaos.gameday.limits.trials.trial import Trial
from smg_chaos.gameday.limits.trials.window_use import admitted_in, admitted_soon, asked_first
from smg_chaos.statistics import Figure

AMOUNT: Final = 60
SOON_US: Final = 2_000_000
_NAME: Final = "one client"
_ON_PER_S: Final = 2.0
_CLOSING_US: Final = 500_000
"""So long before the end nothing is asked any more."""
_LEAVING_US: Final = 3_000_000
"""So long before that the first client is gone: for 2 s a node keeps what it would need if it came back."""


class OneClient:
    """Plays the windows, and keeps which node was asked for everything, and when."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._bursts: list[tuple[str, int]] = []
        self._windows: list[int] = []

    async def play(self) -> list[Figure]:
        """Play all windows; return their figures."""
        trial = self._trial
        await trial.begin(AMOUNT)
        client = trial.not_owning()
        async with trial.sampled():
            await self._obeying(client)
            await self._asking_on(client)
            # Whoever still came back to the first node would take from what the owner is asked for.
            await trial.scene.dismissed()
            await self._window()
            await self._burst(trial.owner, AMOUNT, windows=1)
            await trial.until(self._end_us())
        await trial.scene.quiet()
        return [*self._figures(await trial.record()), *await trial.figures(_NAME)]

    async def _obeying(self, client: str) -> None:
        trial = self._trial
        window = await self._window()
        await self._burst(client, AMOUNT, windows=2)
        until_us = self._end_us(2)
        await self._window()
        used = admitted_in(await trial.record(), trial.allowance).get(window, 0)
        # What was refused is on its way back: together they are the limit once more.
        await trial.scene.burst({client: min(used, AMOUNT)}, until_us=until_us)

    async def _asking_on(self, client: str) -> None:
        trial = self._trial
        await self._window()
        await self._burst(client, AMOUNT, windows=0)
        await trial.until(self._bursts[-1][1] + SOON_US)
        await trial.scene.rate({client: _ON_PER_S})
        await trial.until(self._end_us() - _LEAVING_US)

    async def _window(self) -> int:
        """Return the next window, once it has begun."""
        self._windows.append(await self._trial.border())
        return self._windows[-1]

    def _end_us(self, windows: int = 1) -> int:
        """Return a moment shortly before the end of so many windows."""
        return (self._windows[-1] + windows) * self._trial.window_us - _CLOSING_US

    async def _burst(self, node: str, count: int, *, windows: int) -> None:
        """Ask for so much at once; what is refused comes again in so many windows."""
        self._bursts.append((node, self._trial.scene.now_us()))
        until_us = self._end_us(windows) if windows else 0
        await self._trial.scene.burst({node: count}, until_us=until_us)

    def _figures(self, record: Record) -> list[Figure]:
        trial = self._trial
        soon = []
        for node, at_us in self._bursts:
            asked = asked_first(record, trial.names.index(node), at_us, at_us + SOON_US)
            soon.append(admitted_soon(record, asked[:AMOUNT], SOON_US))
        counts = admitted_in(record, trial.allowance)
        used = [counts.get(window, 0) for window in self._windows]
        owner = f"{trial.owner} owns it"
        nodes = ", ".join(
            f"{count} at {node}" for count, (node, _) in zip(soon, self._bursts, strict=True)
        )
        return [
            goals.AT_ONCE.figure(_NAME, min(soon) / AMOUNT, f"{nodes}; {owner}"),
            goals.OF_WINDOW.figure(_NAME, min(used) / AMOUNT, f"{used} of {AMOUNT}"),
        ]


async def one_client(trial: Trial) -> list[Figure]:
    """Play one client at one node; return its figures."""
    return await OneClient(trial).play()
