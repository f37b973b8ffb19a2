"""Storage quotas of tenants: limits on responses, conversations and bytes in the store.

Totals come from the store, at intervals. Counting a large tenant is expensive, so it is done at
most once a minute for each tenant with requests, and no request waits for it except a tenant's
first. In between, this node adds its own commits since the count. So several nodes together may
exceed a quota by what they committed within a minute, and no more. While the store is unavailable
the last count holds, and without one every request is admitted: the store's own errors decide
whether anything can be kept. Some stores cannot count everything; an unknown count is not limited.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.history.ports import HistoryOptions, Keeper
from smg_storage.errors import StoreError
from smg_storage.records import Access, StoreFigures

COUNT_EVERY_S: Final = 60.0
AGAIN_S: Final = 5.0
"""After so long a count that failed is tried again."""
TIMEOUT_S: Final = 30.0
TENANTS_MAX: Final = 4_096
"""So many tenants are remembered; who comes back later is counted again."""
REST: Final = 9.0
"""So many times as long as a count took nothing is counted: a tenth of the time is work."""
QUOTA_CODE: Final = "storage_quota"


@dataclass(slots=True)
class _Tenant:
    """Counts of one tenant. `due_s` is when it is to be counted again."""

    figures: StoreFigures | None = None
    due_s: float = float("-inf")
    responses: int = 0
    conversations: int = 0
    length: int = 0
    open: int = 0
    """Responses that are being made, and may be kept."""
    counting: asyncio.Lock = field(default_factory=asyncio.Lock)


class Place:
    """Room reserved for one response; call `kept` or `left` once its fate is known."""

    def __init__(self, tenant: _Tenant | None = None) -> None:
        self._tenant = tenant

    def kept(self, length: int) -> None:
        """Record that the response was stored, with so many bytes."""
        tenant, self._tenant = self._tenant, None
        if tenant is not None:
            tenant.open -= 1
            tenant.responses += 1
            tenant.length += length

    def left(self) -> None:
        """Record that nothing was stored; does nothing after `kept` or a first `left`."""
        tenant, self._tenant = self._tenant, None
        if tenant is not None:
            tenant.open -= 1


class Quotas:
    """Checks requests against the quota of their tenant. Time is monotonic seconds."""

    def __init__(
        self, keeper: Keeper, *, now_s: Callable[[], float], options: HistoryOptions
    ) -> None:
        self.refused = 0
        """What was not let in."""
        self._keeper: Final = keeper
        self._now_s: Final = now_s
        self._options: Final = options
        self._tenants: Final[OrderedDict[str, _Tenant]] = OrderedDict()
        self._due: Final[OrderedDict[str, Access]] = OrderedDict()
        self._some_due: Final = asyncio.Event()

    # ── What is let in ───────────────────────────────────────────────────────

    async def response(self, access: Access, length: int) -> Place:
        """Return room for a response whose input has `length` bytes; RATE_LIMITED `storage_quota` if there is none."""
        tenant = await self._known(access)
        if tenant is None:
            return Place()
        quota, figures = self._options.quota, tenant.figures or StoreFigures()
        more = tenant.responses + tenant.open
        if _is_full(quota.responses, figures.responses, more):
            raise self._over(f"{quota.responses} responses", "responses_max")
        self._check_bytes(tenant, length)
        tenant.open += 1
        return Place(tenant)

    async def conversation(self, access: Access, length: int) -> None:
        """Return if there is room for a new conversation with items of so many bytes."""
        tenant = await self._known(access)
        if tenant is None:
            return
        quota, figures = self._options.quota, tenant.figures or StoreFigures()
        if _is_full(quota.conversations, figures.conversations, tenant.conversations):
            raise self._over(f"{quota.conversations} conversations", "conversations_max")
        self._check_bytes(tenant, length)
        # Counted before it is written: two that come at once must not both get the last place.
        tenant.conversations += 1
        tenant.length += length

    async def items(self, access: Access, length: int) -> None:
        """Return if there is room for items of so many bytes."""
        tenant = await self._known(access)
        if tenant is not None:
            self._check_bytes(tenant, length)
            tenant.length += length

    def _check_bytes(self, tenant: _Tenant, length: int) -> None:
        quota, figures = self._options.quota, tenant.figures or StoreFigures()
        if _is_full(quota.bytes, figures.bytes, tenant.length + max(length, 1) - 1):
            raise self._over(f"{quota.bytes} bytes", "max_bytes")

    def _over(self, what: str, knob: str) -> SmgError:
        self.refused += 1
        return SmgError(
            ErrorKind.RATE_LIMITED,
            f"this tenant keeps {what}, as many as it may (storage.quota.{knob}); delete some, or send store: false",
            code=QUOTA_CODE,
        )

    # ── What there is ────────────────────────────────────────────────────────

    async def _known(self, access: Access) -> _Tenant | None:
        """Return the counts of a tenant, counting first if there are none; None where nothing is
        limited.
        """
        if not self._options.quota.is_any:
            return None
        tenant = self._tenants.get(access.tenant)
        if tenant is None:
            tenant = self._tenants[access.tenant] = _Tenant()
            self._make_room()
        self._tenants.move_to_end(access.tenant)
        if self._now_s() < tenant.due_s:
            return tenant
        if tenant.figures is None:
            async with tenant.counting:
                if self._now_s() >= tenant.due_s:
                    await self._count(access, tenant)
        elif access.tenant not in self._due:
            self._due[access.tenant] = Access(tenant=access.tenant, timeout_s=TIMEOUT_S)
            self._some_due.set()
        return tenant

    def _make_room(self) -> None:
        if len(self._tenants) > TENANTS_MAX:
            # Whoever holds a place in one that is forgotten gives it back to nobody, which does no harm.
            self._tenants.popitem(last=False)

    async def _count(self, access: Access, tenant: _Tenant) -> None:
        responses, conversations = tenant.responses, tenant.conversations
        length = tenant.length
        try:
            tenant.figures = await self._keeper.store.tenant_figures(access)
        except StoreError:
            # It is counted and logged where it happened.
            tenant.due_s = self._now_s() + AGAIN_S
            return
        # What came while it was counted may be in the figures or not: it stays until the next time.
        tenant.responses -= responses
        tenant.conversations -= conversations
        tenant.length -= length
        tenant.due_s = self._now_s() + COUNT_EVERY_S

    async def run(self) -> None:
        """Recount, one after the other, tenants whose count is old and that had requests since;
        until cancelled.
        """
        while True:
            while not self._due:
                self._some_due.clear()
                await self._some_due.wait()
            name, access = self._due.popitem(last=False)
            tenant = self._tenants.get(name)
            if tenant is None:
                continue
            began_s = self._now_s()
            async with tenant.counting:
                await self._count(access, tenant)
            await asyncio.sleep(REST * (self._now_s() - began_s))


def _is_full(most: int, counted: int, more: int) -> bool:
    """Whether there is no room for one more; false where the count is unknown."""
    return 0 < most <= counted + more and counted >= 0
