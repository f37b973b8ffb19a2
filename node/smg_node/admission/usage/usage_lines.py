"""Usage lines: what one owner used in an hour, as it is counted, written, and summed up. Pure."""

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from smg_node.core.generation.outcome import Bill
from smg_node.core.prices.price import PICO_PER_MICRO

HOUR_MS: Final = 3_600_000
OTHER: Final = "(other)"
NONE: Final = "(none)"
"""Neither can be the name of a tenant: those have no brackets."""
AT_PROVIDER: Final = "@"
"""Stands before the provider, or the tool, in a part's name: a release that does not know of those takes such rows for
other parts.
"""
Who: TypeAlias = tuple[str, str, str, str, str]
"""Tenant, id of the key, model, provider, tool as `SERVER/TOOL`; empty where there was none."""


class Counts:
    """Sums of one group. `cached` and `written` are parts of `prompt`. `calls` were billed by vendors: `unpriced` of them
    at no known price, `estimated` by what came of an answer that broke off. `runs` are those of tools, `failed` some of
    them. `pico` is what `cost` lacks.
    """

    __slots__ = (
        "answer",
        "cached",
        "calls",
        "cost",
        "estimated",
        "failed",
        "pico",
        "prompt",
        "refused",
        "requests",
        "run_bytes",
        "run_ms",
        "runs",
        "unpriced",
        "written",
    )

    def __init__(self) -> None:
        self.requests = 0
        self.refused = 0
        self.prompt = 0
        self.cached = 0
        self.answer = 0
        self.cost = 0
        self.pico = 0
        self.written = 0
        self.calls = 0
        self.unpriced = 0
        self.estimated = 0
        self.runs = 0
        self.failed = 0
        self.run_ms = 0
        self.run_bytes = 0

    def add(self, other: "Counts | Line") -> None:
        """Add these amounts."""
        self.requests += other.requests
        self.refused += other.refused
        self.prompt += other.prompt
        self.cached += other.cached
        self.answer += other.answer
        self.written += other.written
        self.calls += other.calls
        self.unpriced += other.unpriced
        self.estimated += other.estimated
        self.runs += other.runs
        self.failed += other.failed
        self.run_ms += other.run_ms
        self.run_bytes += other.run_bytes
        self.cost += other.cost
        self.pay(other.pico)

    def pay(self, pico: int) -> None:
        """Add so much cost."""
        micro, self.pico = divmod(self.pico + pico, PICO_PER_MICRO)
        self.cost += micro

    def charge(self, bill: Bill) -> None:
        """Add a call that a vendor takes money for."""
        used = bill.used
        self.calls += 1
        self.prompt += used.prompt_tokens
        self.cached += min(used.cached_tokens, used.prompt_tokens)
        self.written += min(used.cache_write_tokens, used.prompt_tokens)
        self.answer += used.completion_tokens
        self.estimated += bill.estimated
        if bill.cost_pico is None:
            self.unpriced += 1
        else:
            self.pay(bill.cost_pico)


class Line(msgspec.Struct, frozen=True, array_like=True):
    """Use of one owner in an hour, counted from the Unix epoch, as far as one part knows."""

    part: str
    hour: int
    tenant: str
    key_id: str
    model: str
    requests: int = 0
    refused: int = 0
    prompt: int = 0
    cached: int = 0
    answer: int = 0
    cost: int = 0
    provider: str = ""
    pico: int = 0
    written: int = 0
    calls: int = 0
    unpriced: int = 0
    estimated: int = 0
    tool: str = ""
    runs: int = 0
    failed: int = 0
    run_ms: int = 0
    run_bytes: int = 0

    @property
    def who(self) -> Who:
        """The owner: tenant, key, model, provider and tool."""
        return self.tenant, self.key_id, self.model, self.provider, self.tool

    @property
    def events(self) -> int:
        """How often anything was counted: of two lines of one part the one with more is the later one."""
        return self.requests + self.refused + self.calls + self.runs


def line(part: str, hour: int, who: Who, counts: Counts) -> Line:
    """Return what is written of these counts."""
    tenant, key_id, model, provider, tool = who
    apart = provider or tool
    return Line(
        f"{part}{AT_PROVIDER}{apart}" if apart else part,
        hour,
        tenant,
        key_id,
        model,
        counts.requests,
        counts.refused,
        counts.prompt,
        counts.cached,
        counts.answer,
        counts.cost,
        provider,
        counts.pico,
        counts.written,
        counts.calls,
        counts.unpriced,
        counts.estimated,
        tool,
        counts.runs,
        counts.failed,
        counts.run_ms,
        counts.run_bytes,
    )


def merged(*sources: Sequence[Line]) -> dict[tuple[str, int, Who], Line]:
    """Return the latest line of each part, hour and owner."""
    latest: dict[tuple[str, int, Who], Line] = {}
    for source in sources:
        for one in source:
            key = (one.part, one.hour, one.who)
            known = latest.get(key)
            if known is None or one.events >= known.events:
                latest[key] = one
    return latest
