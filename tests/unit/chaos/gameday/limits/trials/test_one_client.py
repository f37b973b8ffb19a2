"""One client at one node, then another one at the owner: who is asked for how much, in which order."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import cast

from smg_chaos.gameday.limits.judge import Allowance, Amount
from smg_chaos.gameday.limits.story import Record
from smg_chaos.gameday.limits.trials.one_client import AMOUNT, one_client
from smg_chaos.gameday.limits.trials.trial import Trial
from smg_chaos.statistics import Figure

WINDOW_US = 60_000_000


class FakeScene:
    """Keeps what it is told; its clock is the trial's."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.us = 0

    def now_us(self) -> int:
        return self.us

    async def burst(self, counts: Mapping[str, int], *, until_us: int = 0) -> None:
        until = f" until {until_us / WINDOW_US:.2f}" if until_us else ""
        self.told.append(f"burst {dict(counts)}{until}")

    async def rate(self, per_s: Mapping[str, float]) -> None:
        self.told.append(f"rate {dict(per_s)}")

    async def dismissed(self) -> None:
        self.told.append("dismissed")

    async def quiet(self) -> None:
        self.told.append("quiet")


class FakeTrial:
    """Owned by `b`; windows pass when they are waited for."""

    def __init__(self) -> None:
        self.scene = FakeScene()
        self.names = ["a", "b", "c"]
        self.owner = "b"
        self.window_us = WINDOW_US
        self.allowance = Allowance(WINDOW_US, [Amount(AMOUNT, 0)])

    async def begin(self, amount: int) -> None:
        self.scene.told.append(f"begin {amount}")

    def not_owning(self) -> str:
        return "a"

    async def border(self) -> int:
        window = self.scene.us // WINDOW_US + 1
        self.scene.us = window * WINDOW_US + 100_000
        self.scene.told.append(f"window {window}")
        return window

    async def until(self, at_us: int) -> None:
        self.scene.us = max(self.scene.us, at_us)

    @asynccontextmanager
    async def sampled(self) -> AsyncIterator[None]:
        yield

    async def record(self) -> Record:
        return Record([], {})

    async def figures(self, name: str) -> list[Figure]:
        return []


async def test_the_first_client_is_gone_before_the_owner_is_asked() -> None:
    trial = FakeTrial()
    await one_client(cast("Trial", trial))
    assert trial.scene.told == [
        "begin 60",
        "window 1",
        "burst {'a': 60} until 2.99",
        "window 2",
        "burst {'a': 0} until 2.99",
        "window 3",
        "burst {'a': 60}",
        "rate {'a': 2.0}",
        "dismissed",
        "window 4",
        "burst {'b': 60} until 4.99",
        "quiet",
    ]
