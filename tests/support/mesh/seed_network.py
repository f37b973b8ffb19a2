"""Network that a seed search sees: who is there, under which names, and everything that was tried."""

import asyncio
import random
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from smg_mesh.io.discovery.resolver import Resolver
from smg_mesh.io.discovery.seed_finder import SeedFinder
from smg_mesh.io.discovery.seed_search import ExchangeFailedError, Seeds, parse_seeds
from smg_mesh.swim.messages import Address

A, B, C = (Address("10.0.0.1", 7946), Address("10.0.0.2", 7946), Address("10.0.0.3", 7946))
ME = Address("10.9.9.9", 7946)


class Network:
    """Who is there, and everything that was tried."""

    def __init__(
        self, there: Sequence[Address] = (), names: Mapping[str, Sequence[str]] | None = None
    ):
        self.there = list(there)
        self.names = dict(names or {})
        self.members: list[Address] = []
        self.selves = [ME]
        self.greeted: list[Address] = []
        self.asked: list[Address] = []
        self.at_once = 0
        self.most_at_once = 0
        self.failures: list[tuple[str, str]] = []
        self.hang: dict[Address, asyncio.Event] = {}

    # What Surroundings promises.
    def alone(self) -> bool:
        return not self.members

    def present(self, address: Address) -> bool:
        return address in self.members

    def own(self, address: Address) -> bool:
        return address == ME

    def greet(self, addresses: Sequence[Address]) -> None:
        self.greeted += addresses

    async def exchange(self, address: Address) -> bool:
        self.asked.append(address)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(0)
            if address in self.hang:
                await self.hang[address].wait()
            if address in self.selves:
                return False
            if address not in self.there:
                raise ExchangeFailedError("nobody there")
            self.members.append(address)
            return True
        finally:
            self.at_once -= 1

    def look_up(self, host: str) -> Sequence[str]:
        found = self.names.get(host)
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return found

    def seeds(
        self,
        *texts: str,
        old_peers: Sequence[Address] = (),
        finders: Sequence[SeedFinder] = (),
    ) -> Seeds:
        return Seeds(
            parse_seeds(texts),
            old_peers,
            resolver=Resolver(random.Random(3), hosts=self.look_up),
            around=self,
            rng=random.Random(3),
            on_failure=lambda seed, error: self.failures.append((seed, error)),
            finders=finders,
        )


@asynccontextmanager
async def running(seeds: Seeds):  # type: ignore[no-untyped-def]  # the decorator makes it one
    async with asyncio.TaskGroup() as group:
        task = group.create_task(seeds.run())
        yield
        task.cancel()


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110 - a test looks from outside
            await asyncio.sleep(0.0005)
