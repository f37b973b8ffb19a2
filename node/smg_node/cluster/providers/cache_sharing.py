"""Cache sharing: makes a process's prompt caches, with what all nodes know of them.

own answers ─▶ cache book ─▶ rows ─▶ all nodes and processes ─▶ their cache books
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from smg_mesh.shared import CacheRow
from smg_node.core.request_context import RequestContext
from smg_node.engines.http.vendor_cache import CachePlan
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.relay.relay_context import Asks
from smg_node.pipeline.relay.relay_request import Relayable

if TYPE_CHECKING:
    from smg_node.pipeline.relay.vendors.cache_plans import CachePlans
    from smg_node.providers.affinity.cache_book import CacheBook, Entry
    from smg_node.providers.affinity.prompt_caches import PromptCaches


class CacheRows(Protocol):
    """Port to the rows that all nodes share."""

    def put(self, row: CacheRow) -> None:
        """Let all know a row, for its life from now on."""
        ...

    def remove(self, beginning: int, scope: int) -> None:
        """Let none know it any more."""
        ...

    def follow(self, heard: Callable[[Sequence[CacheRow]], None]) -> None:
        """Tell `heard` all rows that there are, and then those that change; one without a life was taken away."""
        ...


class SharedCachePlans:
    """Plans requests by what all nodes know of vendors' prompt caches; see `relay_context.CachePlanner`.

    Only requests to routes with `choose: affinity` come here. With the first one the caches are made, and what they
    need is imported.
    """

    def __init__(self, rows: CacheRows, now_ms: Callable[[], int]) -> None:
        self._rows = rows
        self._now_ms = now_ms
        self._plans: CachePlans | None = None

    def of(
        self,
        serving: Sequence[Worker],
        asked: Relayable,
        asks: Asks,
        context: RequestContext,
        key: str,
    ) -> CachePlan | None:
        """See `CachePlanner`."""
        if self._plans is None:
            from smg_node.pipeline.relay.vendors.cache_plans import CachePlans

            self._plans = CachePlans(_made(self._rows, self._now_ms))
        return self._plans.of(serving, asked, asks, context, key)


def _made(rows: CacheRows, now_ms: Callable[[], int]) -> "PromptCaches":
    from smg_node.providers.affinity.cache_book import CacheBook
    from smg_node.providers.affinity.prompt_caches import PromptCaches

    book = CacheBook(_Share(rows))
    rows.follow(partial(_take, book))
    return PromptCaches(book, now_ms)


def _take(book: "CacheBook", rows: Sequence[CacheRow]) -> None:
    from smg_node.providers.affinity.cache_book import Entry, State

    for row in rows:
        if not row.life_ms:
            book.lost(row.beginning, row.scope)
        elif row.state <= State.CONFIRMED:
            # Another state is a newer release's, and says nothing here.
            entry = Entry(row.scope, State(row.state), row.until_ms, row.life_ms)
            book.heard(row.beginning, entry)


class _Share:
    """Where the book's own entries go; see `cache_book.Share`."""

    def __init__(self, rows: CacheRows) -> None:
        self._rows = rows

    def put(self, beginning: int, entry: "Entry") -> None:
        self._rows.put(
            CacheRow(beginning, entry.scope, int(entry.state), entry.until_ms, entry.life_ms)
        )

    def remove(self, beginning: int, scope: int) -> None:
        self._rows.remove(beginning, scope)
