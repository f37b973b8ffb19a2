from collections.abc import Sequence

import pytest

from smg_mesh.io.discovery.discovery_context import DiscoveryContext
from smg_mesh.swim.effects import Effect, Isolated, Member
from smg_mesh.swim.messages import Address, Rank

ME = Address("10.0.0.1", 7946)
B = Address("10.0.0.2", 7946)


def row(name: str, address: Address, rank: Rank) -> Member:
    return Member(name, address, 1, 0, rank, b"", 0, None, None, True, "")


class Table:
    name = "me"
    address = ME

    def __init__(self) -> None:
        self.others: list[Member] = []
        self.greeted: list[Address] = []

    def members(self) -> Sequence[Member]:
        return [row("me", ME, Rank.ALIVE), *self.others]

    def greet(self, addresses: Sequence[Address], *, now_ms: int) -> list[Effect]:
        self.greeted += addresses
        return [Isolated(False)]


class World:
    def __init__(self, listen: Address = ME) -> None:
        self.table = Table()
        self.now_ms = 0
        self.done: list[Effect] = []
        self.around = DiscoveryContext(
            self.table,
            listen=listen,
            now_ms=lambda: self.now_ms,
            step=lambda step: self.done.extend(step()),
            join=self.join,
        )

    async def join(self, address: Address) -> bool:
        return address == B


def test_who_has_only_dead_company_is_alone() -> None:
    world = World()
    assert world.around.alone()
    for rank, alone in [
        (Rank.DEAD, True),
        (Rank.LEFT, True),
        (Rank.SUSPECT, False),
        (Rank.ALIVE, False),
    ]:
        world.table.others = [row("b", B, rank)]
        assert world.around.alone() is alone


def test_the_living_are_present_and_the_gone_are_not() -> None:
    world = World()
    world.table.others = [row("b", B, Rank.SUSPECT)]
    assert world.around.present(B)
    assert world.around.present(ME)
    world.table.others = [row("b", B, Rank.DEAD)]
    world.now_ms += 100
    assert not world.around.present(B)


@pytest.mark.parametrize(
    ("listen", "address", "own"),
    [
        (ME, ME, True),
        (ME, B, False),
        (Address("127.0.0.1", 5), Address("127.0.0.1", 5), True),
        (Address("127.0.0.1", 5), Address("127.0.0.1", 6), False),
        (Address("0.0.0.0", 5), Address("127.0.0.1", 5), True),
        (Address("0.0.0.0", 5), Address("127.0.0.1", 6), False),
        (Address("0.0.0.0", 5), Address("198.51.100.77", 5), False),
        (Address("::", 5), Address("::1", 5), True),
    ],
)
def test_this_node_knows_its_own_addresses(listen: Address, address: Address, own: bool) -> None:
    assert World(listen).around.own(address) is own


async def test_greetings_and_exchanges_go_on_to_who_does_them() -> None:
    world = World()
    world.around.greet([])
    assert world.done == []
    world.around.greet([B])
    assert world.table.greeted == [B]
    assert world.done == [Isolated(False)]
    assert await world.around.exchange(B)
    assert not await world.around.exchange(ME)
