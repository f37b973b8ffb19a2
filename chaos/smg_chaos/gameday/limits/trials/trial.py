"""Trial of one limit: sets it, waits for windows, samples reports, and compares all claims with what
happened.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from smg_chaos.gameday.agents.agent import AgentError
from smg_chaos.gameday.agents.cluster import ClusterError
from smg_chaos.gameday.limits.claims.admissions import Admissions
from smg_chaos.gameday.limits.claims.reasons import check_reasons
from smg_chaos.gameday.limits.claims.remaining import check_remaining
from smg_chaos.gameday.limits.claims.reported_use import Sample, check_use
from smg_chaos.gameday.limits.claims.retries import check_retries
from smg_chaos.gameday.limits.definition import Definer, Rule
from smg_chaos.gameday.limits.judge import Allowance, Amount, fullest
from smg_chaos.gameday.limits.report import SMEAR_US, failures, within
from smg_chaos.gameday.limits.scene import Scene
from smg_chaos.gameday.limits.story import Record
from smg_chaos.gameday.limits.trials import goals
from smg_chaos.gameday.limits.trials.claim_figures import (
    reason_figure,
    remaining_figure,
    retry_figure,
    use_figure,
)
from smg_chaos.statistics import Figure

_AFTER_BORDER_US: Final = 100_000
"""So long after a border there is no doubt which window something is charged to."""
_FIRST_PER_S: Final = 1.0
_FIRST_S: Final = 3.0
_SAMPLE_S: Final = 1.0


class Trial:
    """One limit on the scene's model, in windows of `window_us`. `owner` is known once it began."""

    def __init__(self, scene: Scene, definer: Definer, *, window_us: int, mode: str) -> None:
        assert window_us % 1_000_000 == 0
        self.scene = scene
        self.window_us = window_us
        self.names = scene.cluster.names
        self.amount = 0
        self.since_us = 0
        """From here on, all that is said is checked."""
        self.owner = ""
        self._definer = definer
        self._mode = mode
        self._samples: list[Sample] = []

    # ── Beginning ───────────────────────────────────────────────────────────

    async def begin(self, amount: int, *, first_s: float = _FIRST_S) -> None:
        """Set the limit, and ask the first node once a second for a few seconds.

        The first time, everything that is said from then on is checked; when the limit was another
        one before, only what is said from the next window on.
        """
        seconds = self.window_us // 1_000_000
        rule = Rule(requests=f"{amount}/{seconds}s", mode=self._mode)
        is_new = self.amount == 0
        self.amount, self._samples = amount, []
        if is_new:
            self.since_us = await self._definer.put_unused(rule)
        else:
            await self._definer.begin(rule)
            self.since_us = (self.scene.now_us() // self.window_us + 1) * self.window_us
        await self.scene.rate({self.names[0]: _FIRST_PER_S})
        await asyncio.sleep(first_s)
        await self.scene.quiet()
        self.owner = await self._definer.owner()

    def not_owning(self, number: int = 0) -> str:
        """Return the `number`-th node that does not own the limit."""
        return [name for name in self.names if name != self.owner][number]

    # ── Windows ─────────────────────────────────────────────────────────────

    async def border(self, early_s: float = 0.0) -> int:
        """Return the number of the next window a moment after its beginning, or so much before that."""
        window = self.scene.now_us() // self.window_us + 1
        await self.until(window * self.window_us + _AFTER_BORDER_US - round(early_s * 1e6))
        return window

    async def until(self, at_us: int) -> None:
        """Return at a moment of the wall clock."""
        await asyncio.sleep(max(0.0, (at_us - self.scene.now_us()) / 1e6))

    @asynccontextmanager
    async def sampled(self) -> AsyncIterator[None]:
        """Ask for the report of the limit's use once a second while inside, and once in the end."""
        async with asyncio.TaskGroup() as group:
            sampling = group.create_task(self._sample())
            yield
            sampling.cancel()
        await self._sample_once()

    async def _sample(self) -> None:
        while True:
            await asyncio.sleep(_SAMPLE_S)
            await self._sample_once()

    async def _sample_once(self) -> None:
        asked_us = self.scene.now_us()
        with suppress(AgentError, ClusterError):  # nobody has the limit yet
            content = await self._definer.use()
            self._samples.append(Sample(asked_us, self.scene.now_us() + 1000, content))

    # ── Results ─────────────────────────────────────────────────────────────

    @property
    def allowance(self) -> Allowance:
        """What each window allows."""
        return Allowance(self.window_us, [Amount(self.amount, self.since_us)])

    async def record(self) -> Record:
        """Return what was sent since the checks began."""
        return await self.scene.record(self.since_us)

    async def figures(self, name: str) -> Sequence[Figure]:
        """Return the figures of all claims since the checks began, and of what was admitted."""
        whole = await self.scene.record()
        answers = [one for one in whole.answers if one.sent_us >= self.since_us]
        admissions = Admissions(whole, self.window_us)
        samples = [one for one in self._samples if one.asked_us >= self.since_us]
        say = self.scene.stage.say
        record = Record(answers, whole.arrivals)
        return [
            self._fullest(name, record),
            remaining_figure(name, check_remaining(answers, admissions, self.amount), say),
            retry_figure(name, check_retries(answers, admissions, self.amount), say),
            reason_figure(name, check_reasons(answers, admissions), say),
            use_figure(name, check_use(samples, admissions), say),
            failures(name, record, self.scene.hurt, say),
        ]

    def _fullest(self, name: str, record: Record) -> Figure:
        run = fullest(record.spans(self.allowance, SMEAR_US), self.allowance.of)
        says = within(name, record, self.allowance).says
        return goals.FULLEST.figure(name, 0.0 if run is None else run.share, says)
