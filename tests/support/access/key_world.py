"""Key world: nodes that share the keys of one issuer, the issuer itself, and a clock that only tests move."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from random import Random

from smg_mesh.mesh import AskError
from smg_mesh.state.access.access_state import AccessState, IssuerKeySet
from smg_node.access.tokens.issuer import Issuer
from smg_node.cluster.issuers.key_fetches import KeyFetches
from smg_node.cluster.issuers.key_ports import FetchedKeys, IssuerError, source_of
from support.state.fake_namespace import EPOCH_MS, FakeNamespaces

Answerer = Callable[[bytes, str], Awaitable[bytes]]
CORP = Issuer("corp", "https://sso.example", ("smg",), role_map=(("*", "user"),), tenant_fixed="t")


class MovedClock:
    """Both clocks, as one test moves them."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def now_ms(self) -> int:
        return EPOCH_MS + round(self.seconds * 1000)

    def monotonic_s(self) -> float:
        return self.seconds


class FakeIssuer:
    """An issuer: the keys it has, and how often it was asked; `gate` holds its answers back while it is not set."""

    def __init__(self) -> None:
        self.document = b'{"keys":[]}'
        self.max_age_ms = 3_600_000
        self.asked = 0
        self.away = False
        self.gate = asyncio.Event()
        self.gate.set()

    async def fetch(self, issuer: Issuer) -> FetchedKeys:
        """Answer as the issuer does."""
        self.asked += 1
        await self.gate.wait()
        if self.away:
            raise IssuerError("it cannot be reached: connection refused")
        return FetchedKeys(self.document, self.max_age_ms)


class FakeQueries:
    """Queries of one node; those to `silent` nodes are never answered, old ones refuse."""

    def __init__(self, world: "KeyWorld", me: str) -> None:
        self._world = world
        self._me = me

    async def ask(self, name: str, topic: str, payload: bytes, *, deadline_s: float = 5.0) -> bytes:
        """Ask a node, which answers at once or not at all."""
        if name in self._world.silent:
            raise AskError("timeout", "no answer")
        if name in self._world.old:
            raise AskError("unknown_topic", "no such topic")
        return await self._world.answerers[name](payload, self._me)

    def answer(self, topic: str, reply: Answerer) -> None:
        """Register the answerer."""
        self._world.answerers[self._me] = reply


class KeyWorld:
    """Nodes by name, each with its replica and its fetches."""

    def __init__(self, names: Sequence[str] = ("a", "b", "c"), seed: int = 1) -> None:
        self.clock = MovedClock()
        self.issuer = FakeIssuer()
        self.issuers = {"corp": CORP}
        self.others: dict[str, dict[str, Issuer]] = {}
        """Those of nodes whose own settings differ."""
        self.own: Sequence[str] = ("corp",)
        """Those of the settings of the nodes."""
        self.shared = FakeNamespaces(*names, name="access")
        self.answerers: dict[str, Answerer] = {}
        self.silent: set[str] = set()
        self.old: set[str] = set()
        self.living = list(names)
        self.held = True
        self.states = {name: AccessState(self.shared[name]) for name in names}
        self.fetches = {name: self._fetches(name, Random(seed)) for name in names}

    def _fetches(self, name: str, rng: Random) -> KeyFetches:
        return KeyFetches(
            name,
            lambda: self._of(name),
            self.states[name].keys,
            self.issuer.fetch,
            clock=self.clock,
            rng=rng,
            living=lambda: self.living,
            held=lambda: self.held,
            mesh=FakeQueries(self, name),
        )

    @property
    def first(self) -> str:
        """The node whose duty the issuer is."""
        return self.fetches["a"].nodes("corp")[0]

    @property
    def last(self) -> str:
        """The node that stands by last."""
        return self.fetches["a"].nodes("corp")[-1]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run all nodes meanwhile, and let what is due at the start be over."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one.run()) for one in self.fetches.values()]
            await settled()
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()

    async def pass_time(self, seconds: float) -> None:
        """Move the clock, and let what is due be over."""
        self.clock.seconds += seconds
        self.shared.advance(round(seconds * 1000))
        for one in self.fetches.values():
            one.look()
        await settled()

    async def want(self, name: str) -> bool:
        """Meet an unknown key on a node; return whether there was something to wait for, once that is over."""
        wanted = self.fetches[name].want("corp")
        if wanted is not None:
            await asyncio.wait_for(asyncio.shield(wanted), 5)
        return wanted is not None

    def document(self, name: str) -> bytes | None:
        """Return the keys as a node has them."""
        held = self.held_by(name)
        return None if held is None else held.document

    def held_by(self, name: str) -> IssuerKeySet | None:
        """Return the set that a node goes by."""
        issuer = self._of(name).get("corp")
        return None if issuer is None else self.states[name].keys.get("corp", source_of(issuer))

    def _of(self, name: str) -> dict[str, Issuer]:
        return self.others.get(name, self.issuers)


async def settled(turns: int = 50) -> None:
    """Return when all that can go on without time has."""
    for _ in range(turns):
        await asyncio.sleep(0)
