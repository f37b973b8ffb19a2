"""Run slots: limits on concurrent background runs, per node and per tenant."""

from collections.abc import Callable
from types import TracebackType
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.history.ports import HistoryOptions

RETRY_S: Final = 5.0


class RunSlot:
    """One slot. A `with` block frees it at its end, unless it is kept: then it is freed later."""

    def __init__(self, give_back: Callable[[], None]) -> None:
        self._give_back: Callable[[], None] | None = give_back
        self._kept = False

    def keep(self) -> None:
        """Keep it beyond the `with`."""
        self._kept = True

    def free(self) -> None:
        """Free it; further calls do nothing."""
        give_back, self._give_back = self._give_back, None
        if give_back is not None:
            give_back()

    def __enter__(self) -> "RunSlot":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._kept:
            self.free()


class RunSlots:
    """All slots; lowered limits hold for new runs only."""

    def __init__(self, options: HistoryOptions) -> None:
        self.taken = 0
        self._options: Final = options
        self._of_tenants: Final[dict[str, int]] = {}

    def has_room(self, tenant: str) -> bool:
        """Whether one more run of this tenant may be started."""
        options = self._options
        return (
            self.taken < options.background_node_max
            and self._of_tenants.get(tenant, 0) < options.background_tenant_max
        )

    def take(self, tenant: str) -> RunSlot:
        """Return a slot; RATE_LIMITED `background_limit` if there is none."""
        if not self.has_room(tenant):
            raise SmgError(
                ErrorKind.RATE_LIMITED,
                "too many responses are being made in the background; wait for some of them",
                code="background_limit",
                retry_after_s=RETRY_S,
            )
        self.taken += 1
        self._of_tenants[tenant] = self._of_tenants.get(tenant, 0) + 1
        return RunSlot(lambda: self._free(tenant))

    def _free(self, tenant: str) -> None:
        self.taken -= 1
        left = self._of_tenants[tenant] - 1
        if left:
            self._of_tenants[tenant] = left
        else:
            del self._of_tenants[tenant]
