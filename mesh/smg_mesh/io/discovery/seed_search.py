"""Seed search: how a node finds the first peer, and the others again: seeds are asked for ever.

While this node is alone or has exchanged with no peer, two things run side by side:

    greetings   every second a HELLO, one packet, to every address known so far: a seed that has just
                come up is noticed within a second, whatever the backoff says; names that did not
                resolve are looked up again each time
    rounds      every name is resolved anew; all addresses in random order, four at a time, are asked
                for an exchange, each as soon as its name is known: a name server that hangs holds
                up no other seed; then a pause of 0.5 s, doubled up to 10 s, ± 20 %

The answer to a HELLO makes a member, and the core opens an exchange with it: joined. Afterwards,
every 30 s, the seeds are resolved again, and addresses that are no living member's are greeted and
asked again, so that two islands that know one common name find each other. The peers of an earlier
life act as seeds that are never resolved. A finder is a seed whose addresses another system shows: it is
asked where a name would be resolved, in rounds only, and the last addresses it showed count until the next.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from smg_mesh.config import DEFAULT_PORT
from smg_mesh.io.discovery.host_address import Place, parse_place
from smg_mesh.io.discovery.resolver import (
    ADDRESSES_MAX,
    LOOKUP_TIMEOUT_S,
    Resolved,
    ResolveError,
    Resolver,
)
from smg_mesh.io.discovery.seed_finder import FindError, SeedFinder
from smg_mesh.swim.effects import Rng
from smg_mesh.swim.messages import Address

SEEDS_MAX: Final = 64
AT_A_TIME: Final = 4
GREET_S: Final = 1.0
GREETINGS_OF_OLD_PEERS: Final = 10
"""Peers of an earlier life get that many greetings a second apart; later ones come every 30 s."""
BACKOFF_MIN_S: Final = 0.5
BACKOFF_MAX_S: Final = 10.0
AGAIN_S: Final = 30.0
OWN_MAX: Final = 64
FIND_S: Final = 10.0
"""A finder is given so long for an answer."""
_FAILURE_CHARACTERS_MAX: Final = 200
_FAILURES_REPORTED_MAX: Final = 8

T = TypeVar("T")


class ExchangeFailedError(Exception):
    """No exchange: no process there, or none of this mesh; the message says which."""


class Surroundings(Protocol):
    """Interface of the rest of the mesh that the search needs."""

    def alone(self) -> bool:
        """Whether no other member is alive here."""
        ...

    def present(self, address: Address) -> bool:
        """Whether a living member has this address."""
        ...

    def own(self, address: Address) -> bool:
        """Whether that is this node itself."""
        ...

    def greet(self, addresses: Sequence[Address]) -> None:
        """Send each a HELLO."""
        ...

    async def exchange(self, address: Address) -> bool:
        """Exchange with the process at an address; False if that was
        this node. ExchangeFailedError.
        """
        ...


@dataclass(slots=True)
class Seed:
    """One seed, and how its attempts go. `source` is a name, an address, or what finds addresses."""

    source: Place | SeedFinder
    addresses: tuple[Address, ...] = ()
    error: str = ""
    """What went wrong last; empty when it answered, or was not asked yet."""
    ourselves: bool = False
    _reported: list[str] = field(default_factory=list, repr=False)

    @property
    def text(self) -> str:
        """What operators know it by."""
        return self.source.text

    def newly_failed(self, error: str) -> bool:
        """Note the failure; return whether it is of a kind not reported since it last answered."""
        self.error = error[:_FAILURE_CHARACTERS_MAX]
        if self.error in self._reported or len(self._reported) >= _FAILURES_REPORTED_MAX:
            return False
        self._reported.append(self.error)
        return True

    def answered(self) -> None:
        """Note that it is well."""
        self.error = ""
        self._reported.clear()


class Seeds:
    """Seed search of one node. `on_failure(seed, error)` is told of every new
    kind of trouble with a seed, once.
    """

    def __init__(
        self,
        places: Sequence[Place],
        old_peers: Sequence[Address],
        *,
        resolver: Resolver,
        around: Surroundings,
        rng: Rng,
        on_failure: Callable[[str, str], None],
        finders: Sequence[SeedFinder] = (),
    ) -> None:
        self._finders = tuple(finders)
        sources: list[Place | SeedFinder] = [*places, *finders]
        self._seeds = {source.text: Seed(source) for source in sources}
        self._old_peers = tuple(old_peers)
        self._resolver = resolver
        self._around = around
        self._rng = rng
        self._on_failure = on_failure
        self._own: dict[Address, None] = {}
        self._wake = asyncio.Event()
        self._searched_for = asyncio.Event()
        self._looks_soon = False
        self.joined = False
        """Whether an exchange with a peer ever went well."""

    @property
    def seeds(self) -> Sequence[Seed]:
        """All seeds, as first named."""
        return tuple(self._seeds.values())

    @property
    def expected(self) -> bool:
        """Whether there is a peer to wait for: a seed that is not this node itself."""
        named = any(not seed.ourselves for seed in self._seeds.values())
        return named or bool(self._old_peers)

    def add(self, places: Sequence[Place]) -> None:
        """Take more seeds and try them at once; ValueError beyond the limit."""
        new = [place for place in places if place.text not in self._seeds]
        if len(self._seeds) + len(new) > SEEDS_MAX:
            raise ValueError(f"more than {SEEDS_MAX} seeds")
        for place in new:
            self._seeds[place.text] = Seed(place)
        if new:
            self._look_again()

    def exchanged(self) -> None:
        """An exchange with a peer went well, whichever side began it."""
        if not self.joined:
            self.joined = True
            self._wake.set()

    def lost_one(self) -> None:
        """A member died or left: if none is alive any more, search as at the start."""
        # Looked at later, and once: half a cluster may go in one exchange.
        if not self._looks_soon:
            self._looks_soon = True
            asyncio.get_running_loop().call_soon(self._look_around)

    def _look_around(self) -> None:
        self._looks_soon = False
        if self._around.alone():
            self._look_again()

    async def run(self) -> None:
        """Search until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._rounds())
                group.create_task(self._greetings())
        finally:
            for finder in self._finders:
                await finder.close()

    def _look_again(self) -> None:
        self._wake.set()
        self._searched_for.set()

    def _searching(self) -> bool:
        return not self.joined or self._around.alone()

    # ── Rounds ───────────────────────────────────────────────────────────────

    async def _rounds(self) -> None:
        backoff_s = BACKOFF_MIN_S
        while True:
            self._wake.clear()
            await self._round()
            if self._searching():
                pause_s = backoff_s * (0.8 + 0.4 * self._rng.random())
                backoff_s = min(2 * backoff_s, BACKOFF_MAX_S)
            else:
                pause_s, backoff_s = AGAIN_S, BACKOFF_MIN_S
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._wake.wait()

    async def _round(self) -> None:
        """Ask every absent address once, in random order, each seed as soon as its name is resolved."""
        asked: set[Address] = set()
        places = asyncio.Semaphore(AT_A_TIME)
        searching = self._searching()

        async def ask(seed: Seed | None, addresses: Sequence[Address]) -> None:
            absent = [one for one in addresses if self._absent(one) and one not in asked]
            asked.update(absent)
            self._around.greet(absent)
            for address in self._shuffled(absent):
                async with places:
                    if self._searching() == searching:
                        await self._ask(seed, address)

        async def ask_seed(seed: Seed) -> None:
            await self._resolve(seed)
            await ask(seed, seed.addresses)

        async with asyncio.TaskGroup() as group:
            for seed in self._shuffled(self.seeds):
                group.create_task(ask_seed(seed))
            for address in self._shuffled(self._old_peers):
                if searching:
                    group.create_task(ask(None, [address]))
            if not searching:
                self._around.greet([one for one in self._old_peers if self._absent(one)])

    async def _ask(self, seed: Seed | None, address: Address) -> None:
        try:
            other = await self._around.exchange(address)
        except ExchangeFailedError as error:
            if seed is not None:
                self._failed(seed, f"{address}: {error}")
            return
        if not other:
            self._is_own(address)
            return
        self.exchanged()
        if seed is not None:
            seed.answered()

    def _shuffled(self, things: Sequence[T]) -> list[T]:
        return sorted(things, key=lambda _: self._rng.random())

    # ── Greetings ────────────────────────────────────────────────────────────

    async def _greetings(self) -> None:
        """Greet all seeds once a second as long as no peer is found."""
        while True:
            self._searched_for.clear()
            greetings = 0
            while self._searching():
                await asyncio.sleep(GREET_S)
                greetings += 1
                await self._greet_absent(old_peers=greetings <= GREETINGS_OF_OLD_PEERS)
            await self._searched_for.wait()

    async def _greet_absent(self, *, old_peers: bool) -> None:
        named = [address for seed in self.seeds for address in seed.addresses]
        everybody = dict.fromkeys([*named, *(self._old_peers if old_peers else ())])
        self._around.greet([address for address in everybody if self._absent(address)])
        names = [seed for seed in self.seeds if isinstance(seed.source, Place)]
        unresolved = [seed for seed in names if not seed.addresses]
        if not unresolved:
            return
        async with asyncio.TaskGroup() as group:
            for seed in unresolved:
                group.create_task(self._greet_resolved(seed))

    async def _greet_resolved(self, seed: Seed) -> None:
        await self._resolve(seed, timeout_s=GREET_S)
        self._around.greet([address for address in seed.addresses if self._absent(address)])

    # ── Addresses ────────────────────────────────────────────────────────────

    def _absent(self, address: Address) -> bool:
        """Return whether a node of ours may be there that is not known as living."""
        return not self._own_address(address) and not self._around.present(address)

    def _own_address(self, address: Address) -> bool:
        return address in self._own or self._around.own(address)

    def _is_own(self, address: Address) -> None:
        if len(self._own) < OWN_MAX:
            self._own[address] = None
        for seed in self._seeds.values():
            self._look_at(seed)

    def _look_at(self, seed: Seed) -> None:
        seed.ourselves = bool(seed.addresses) and all(map(self._own_address, seed.addresses))
        if seed.ourselves or any(map(self._around.present, seed.addresses)):
            seed.answered()

    async def _resolve(self, seed: Seed, *, timeout_s: float = LOOKUP_TIMEOUT_S) -> None:
        source = seed.source
        try:
            if isinstance(source, Place):
                found = await self._resolver.resolve(source, timeout_s=timeout_s)
            else:
                found = await _found(source)
        except (ResolveError, FindError) as error:
            self._failed(seed, str(error))
            return
        seed.addresses = found.addresses
        self._look_at(seed)
        if found.stale and isinstance(source, Place):
            self._failed(seed, f"{source.host}: {found.stale}; using its last known address")

    def _failed(self, seed: Seed, error: str) -> None:
        if seed.newly_failed(error):
            self._on_failure(seed.text, seed.error)


async def _found(finder: SeedFinder) -> Resolved:
    """Return what a finder shows; FindError says why it shows nothing."""
    try:
        async with asyncio.timeout(FIND_S):
            return Resolved(tuple(await finder.find())[:ADDRESSES_MAX])
    except TimeoutError:
        raise FindError(f"no answer in {FIND_S:g} s") from None


def parse_seeds(texts: Sequence[str]) -> list[Place]:
    """Return the places, each once; ValueError names the first that is none."""
    places = [parse_place(text, default_port=DEFAULT_PORT) for text in texts]
    if len({place.text for place in places}) > SEEDS_MAX:
        raise ValueError(f"more than {SEEDS_MAX} seeds")
    return places
