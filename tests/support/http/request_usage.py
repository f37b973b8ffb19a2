"""Requests that are over, for tests of what they used."""

from collections.abc import Callable, Sequence

from smg_node.admission.usage.usage_book import UsageBook
from smg_node.admission.usage.usage_lines import Line
from smg_node.cluster.membership.member_query import MemberQueries
from smg_node.cluster.usage.usage_service import ClusterUsage
from smg_node.core.generation.outcome import Outcome, OutcomeKind
from smg_node.core.prices.price import Price, Rates, flat_price, pico_of
from smg_node.core.prices.price_list import PriceList
from smg_node.http.ports.node import MemberRow
from smg_node.system_clock import SystemClock

__all__ = ["HOUR_MS", "MIDNIGHT", "SpentDesk", "UsageBook", "Wall", "flat", "outcome"]

HOUR_MS = 3_600_000
MIDNIGHT = 490_920
"""An hour, counted from the epoch, with which a UTC day begins."""
assert MIDNIGHT % 24 == 0


class Wall:
    """A wall clock that a test sets."""

    def __init__(self, hour: float = MIDNIGHT) -> None:
        self.ms = round(hour * HOUR_MS)

    def now_ms(self) -> int:
        return self.ms

    def pass_hours(self, hours: float) -> None:
        self.ms += round(hours * HOUR_MS)


def outcome(
    tenant: str = "acme",
    model: str = "m",
    key_id: str = "k1",
    *,
    kind: OutcomeKind = "ok",
    status: int = 200,
    prompt: int = 10,
    cached: int = 4,
    answer: int = 5,
    attempts: int = 1,
) -> Outcome:
    return Outcome(
        dialect="chat",
        model=model,
        worker="w",
        kind=kind,
        error_code="",
        status=status,
        streamed=False,
        prompt_tokens=prompt,
        cached_tokens=cached,
        completion_tokens=answer,
        received_s=0.0,
        first_token_s=None,
        ended_s=1.0,
        attempts=attempts,
        tenant=tenant,
        key_id=key_id,
    )


def flat(prompt: float, cached: float, answer: float) -> Price:
    """A price for every call, of a million tokens each."""
    asked = pico_of(prompt)
    return flat_price(Rates(asked, pico_of(cached), asked, asked, pico_of(answer)))


class _Nothing:
    """A disk without any usage."""

    async def read(self, first: int, end: int) -> Sequence[Line]:
        return ()


class SpentDesk(ClusterUsage):
    """The desk of a node that has kept nothing, and uses as much as a test says to `book`."""

    def __init__(
        self, name: str, members: Callable[[], Sequence[MemberRow]], mesh: MemberQueries | None
    ) -> None:
        now_ms = SystemClock().now_ms
        self.book = UsageBook(PriceList(), now_ms=now_ms, life=name)
        super().__init__(name, self.book, _Nothing(), members, mesh, now_ms=now_ms)
