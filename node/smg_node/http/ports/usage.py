"""Usage port: usage of all tenants, as the HTTP surface reads it."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, Protocol, TypeAlias

import msgspec

Aspect: TypeAlias = Literal["hour", "day", "tenant", "key", "model", "provider", "server", "tool"]
ASPECTS: Final[tuple[Aspect, ...]] = (
    "hour",
    "day",
    "tenant",
    "key",
    "model",
    "provider",
    "server",
    "tool",
)
"""What rows may be apart by, in the order in which they are sorted."""


class UsageQuery(msgspec.Struct, frozen=True):
    """Filter of usage: whole UTC hours since the epoch, `first` and before `end`. None is all of
    them. `tool` is `SERVER/TOOL`, `server` a server of tools.
    """

    first: int
    end: int
    by: Sequence[Aspect]
    tenant: str | None = None
    key: str | None = None
    model: str | None = None
    provider: str | None = None
    tool: str | None = None
    server: str | None = None


class Amounts(msgspec.Struct, frozen=True):
    """Amounts used. Cached tokens, and those written into vendors' caches, are parts of the prompt's; cost is in
    millionths of the currency. `calls` are those of vendors; the cost of `unpriced_calls` is unknown, the tokens of
    `estimated_calls` are those that came before an answer broke off. `tool_runs` are runs of tools, which are no requests;
    `tool_ms` is how long they took together, `tool_bytes` how long their results were.
    """

    requests: int = 0
    refused: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost_micro: int = 0
    cache_write_tokens: int = 0
    calls: int = 0
    unpriced_calls: int = 0
    estimated_calls: int = 0
    tool_runs: int = 0
    failed_tool_runs: int = 0
    tool_ms: int = 0
    tool_bytes: int = 0


class UsageRow(msgspec.Struct, frozen=True):
    """Usage for one combination of aspects. `hour` is when its hour or day begins; None where rows
    are summed up.
    """

    hour: int | None
    tenant: str
    key: str
    model: str
    used: Amounts
    provider: str = ""
    tool: str = ""
    server: str = ""


class UsageSums(msgspec.Struct, frozen=True):
    """Usage on all nodes. `silent` did not answer, and why; `exact` if nothing is missing.

    `first` and `end` are the hours that are summed up. `cut` counts excess rows, which are merged
    into one.
    """

    first: int
    end: int
    rows: Sequence[UsageRow]
    total: Amounts
    exact: bool
    cut: int = 0
    silent: Mapping[str, str] = {}


class UsageService(Protocol):
    """The usage of the whole cluster."""

    async def usage(self, wish: UsageQuery) -> UsageSums:
        """Sum up the usage on all nodes; OVERLOADED if too many ask at the same time."""
        ...
