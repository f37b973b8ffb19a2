"""Discovery context: what the search for peers sees of the mesh:
addresses that live, and calls to them.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

from smg_mesh.io.discovery.host_address import is_local, is_wildcard
from smg_mesh.io.driver import Step
from smg_mesh.swim.effects import Effect, Member
from smg_mesh.swim.messages import Address

_LOOK_AGAIN_MS: Final = 100
"""Seeds are asked for one by one, and the table does not change that fast."""


class Table(Protocol):
    """Interface of the core that discovery needs; `swim_core.Swim` fits."""

    @property
    def name(self) -> str:
        """This node's."""
        ...

    @property
    def address(self) -> Address:
        """What peers are told."""
        ...

    def members(self) -> Sequence[Member]:
        """Return all rows."""
        ...

    def greet(self, addresses: Sequence[Address], *, now_ms: int) -> list[Effect]:
        """Say hello."""
        ...


class DiscoveryContext:
    """The surroundings of one node; fulfils `seed_search.Surroundings`."""

    def __init__(
        self,
        table: Table,
        *,
        listen: Address,
        now_ms: Callable[[], int],
        step: Callable[[Step], object],
        join: Callable[[Address], Awaitable[bool]],
    ) -> None:
        self._table = table
        self._listen = listen
        self._now_ms = now_ms
        self._step = step
        self._join = join
        self._living: frozenset[Address] = frozenset()
        self._looked_ms = now_ms() - _LOOK_AGAIN_MS

    def alone(self) -> bool:
        """Return whether no other member is alive here."""
        me = self._table.name
        return all(member.rank.gone or member.name == me for member in self._table.members())

    def present(self, address: Address) -> bool:
        """Return whether a living member has this address."""
        now_ms = self._now_ms()
        if now_ms - self._looked_ms >= _LOOK_AGAIN_MS:
            living = (one.address for one in self._table.members() if not one.rank.gone)
            self._living = frozenset(living)
            self._looked_ms = now_ms
        return address in self._living

    def own(self, address: Address) -> bool:
        """Return whether that is where this node listens, by whatever name."""
        if address in (self._table.address, self._listen):
            return True
        if address.port != self._listen.port or not is_wildcard(self._listen.host):
            return False
        return is_local(address.host)

    def greet(self, addresses: Sequence[Address]) -> None:
        """Send each a HELLO."""
        if addresses:
            now_ms = self._now_ms()
            self._step(lambda: self._table.greet(addresses, now_ms=now_ms))

    async def exchange(self, address: Address) -> bool:
        """Exchange with the process at an address; False if that was
        this node. ExchangeFailedError.
        """
        return await self._join(address)
