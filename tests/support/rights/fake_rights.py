"""Limits and rights without a cluster: shares that a test fills, and rules that it writes."""

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from smg_node.admission.admission import Admission
from smg_node.admission.ports import Match, State, Unit

MINUTE_MS = 60_000


@dataclass(eq=False)
class FakeShare:
    key: str
    left: int
    amount: int = 0
    window_ms: int = MINUTE_MS
    window: int = 7
    low: int = 0
    wants_more: bool = False
    debt: int = 0
    spent: int = 0
    offered: int = 0
    pool: int = 0
    ends_ms: int = 0
    next_ms: int = 0
    state: State = "exact"


@dataclass(frozen=True)
class FakeMatch:
    key: str
    scope: str
    unit: Unit
    window_ms: int = MINUTE_MS
    reserve: Literal["worst_case", "estimate"] = "estimate"
    on_exhausted: Literal["debt", "finish"] = "debt"
    cached_weight: float = 1.0


@dataclass
class FakeRules:
    """Everybody meets all of `matches`, but for those of `only`."""

    matches: list[FakeMatch] = field(default_factory=list)
    only: dict[tuple[str, str, str], list[FakeMatch]] = field(default_factory=dict)
    version: int = 0
    asked: int = 0
    providers: dict[str, list[FakeMatch]] = field(default_factory=dict)
    tools: dict[str, list[FakeMatch]] = field(default_factory=dict)

    def of_provider(self, provider: str) -> Sequence[Match]:
        return self.providers.get(provider, [])

    def of_tool(self, tenant: str, key_id: str, model: str, tool: str) -> Sequence[Match]:
        return self.tools.get(tool, [])

    def matching(self, tenant: str, key_id: str, model: str) -> Sequence[Match]:
        self.asked += 1
        return self.only.get((tenant, key_id, model), self.matches)


async def _never(share: FakeShare, cost: int, within_s: float) -> bool:
    return False


@dataclass
class FakeRights:
    shares: dict[str, FakeShare] = field(default_factory=dict)
    refill: Callable[[FakeShare, int, float], Awaitable[bool]] = _never
    waited: list[tuple[str, int, float]] = field(default_factory=list)
    asleep: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """What a share that sleeps had: its window, what was left, what was spent."""

    def share(self, key: str) -> FakeShare | None:
        share, had = self.shares.get(key), self.asleep.pop(key, None)
        if share is not None and had is not None:
            share.window, share.left, share.spent = had
        return share

    def sleep(self, share: FakeShare) -> None:
        self.asleep[share.key] = (share.window, share.left, share.spent)
        share.window, share.left = -1, 0

    async def refilled(self, share: FakeShare, cost: int, within_s: float) -> bool:
        self.waited.append((share.key, cost, within_s))
        return await self.refill(share, cost, within_s)


def limit(
    unit: Unit = "requests",
    *,
    scope: str = "tenant=acme",
    window_ms: int = MINUTE_MS,
    reserve: Literal["worst_case", "estimate"] = "estimate",
    on_exhausted: Literal["debt", "finish"] = "debt",
    cached_weight: float = 1.0,
) -> FakeMatch:
    return FakeMatch(
        f"{scope}#{unit}/{window_ms}", scope, unit, window_ms, reserve, on_exhausted, cached_weight
    )


@dataclass
class LimitWorld:
    """Some limits with so much left of each, and a clock for whoever waits."""

    rules: FakeRules = field(default_factory=FakeRules)
    rights: FakeRights = field(default_factory=FakeRights)
    wall_ms: int = 999_999_980_000
    """20 s into a minute."""
    now_s: float = 0.0

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic_s(self) -> float:
        return self.now_s

    def add(self, match: FakeMatch, left: int, amount: int | None = None) -> FakeShare:
        """Define a limit, with so much left here and nothing anywhere else."""
        share = FakeShare(
            match.key,
            left,
            left if amount is None else amount,
            match.window_ms,
            window=self.wall_ms // match.window_ms if match.window_ms else 0,
            ends_ms=(self.wall_ms // match.window_ms + 1) * match.window_ms
            if match.window_ms
            else 0,
        )
        self.rules.matches.append(match)
        self.rules.version += 1
        self.rights.shares[match.key] = share
        return share


def whole(share: FakeShare) -> tuple[int, int]:
    """What is left of a share, and what was spent of it."""
    return share.left, share.spent


def door_of(world: LimitWorld) -> Admission:
    return Admission(world.rules, world.rights, clock=world, rng=random.Random(1))


def gives(
    world: LimitWorld, *amounts: int, after_s: float = 0.02
) -> Callable[[FakeShare, int, float], Awaitable[bool]]:
    """Give these amounts, one each time that somebody waits; nothing after the last one."""
    coming = list(amounts)

    async def refill(share: FakeShare, cost: int, within_s: float) -> bool:
        world.now_s += after_s
        if not coming:
            return False
        share.left += coming.pop(0)
        return True

    return refill
