"""Mesh assembly: opens first what can fail, in the order that leaves
nothing behind, then wires the parts.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from smg_mesh.config import DEFAULT_PORT, MeshOptions
from smg_mesh.io.blocking_threads import Threads
from smg_mesh.io.counters import Counters
from smg_mesh.io.discovery.advertise import advertised_address
from smg_mesh.io.discovery.discovery_context import DiscoveryContext
from smg_mesh.io.discovery.host_address import Place, numeric_host, parse_place
from smg_mesh.io.discovery.resolver import ResolveError, Resolver
from smg_mesh.io.discovery.seed_finder import SeedFinder
from smg_mesh.io.discovery.seed_search import Seeds, parse_seeds
from smg_mesh.io.driver import Driver, Step
from smg_mesh.io.effect_listener import Listener
from smg_mesh.io.errors import MeshError
from smg_mesh.io.event_journal import Journal
from smg_mesh.io.gossip_bridge import GossipBridge
from smg_mesh.io.mesh_parts import Parts
from smg_mesh.io.network.listen_sockets import (
    Doors,
    is_closed,
    load_keys,
    open_doors,
    stream_credentials,
)
from smg_mesh.io.peer_snapshot import KeptPeer, Memory, seeds_of
from smg_mesh.io.security import key_rotation as rotating
from smg_mesh.io.security.key_rotation import Rotation
from smg_mesh.io.security.keyring import Keyring
from smg_mesh.io.security.versioned_ring import VersionedRing
from smg_mesh.io.shared_state.state_interface import Replicated
from smg_mesh.io.stream_sessions import Answers, StreamSessions
from smg_mesh.io.views import pack_meta
from smg_mesh.swim.boot_numbers import first_boot
from smg_mesh.swim.effects import Rng
from smg_mesh.swim.messages import Address, Rank
from smg_mesh.swim.swim_core import Identity, Swim

OLD_PEERS_MAX: Final = 64
"""Of an earlier life, greeted after a restart."""
_KEYS_S: Final = 10.0
_RING_S: Final = 5.0

_log = logging.getLogger("smg_mesh")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """Surface of a mesh: what it gets from outside, and what it shows."""

    options: MeshOptions
    rng: Rng
    wall_ms: Callable[[], int]
    monotonic_s: Callable[[], float]
    counters: Counters
    journal: Journal
    superseded: asyncio.Event
    shared: Replicated | None = None
    finders: Sequence[SeedFinder] = ()

    def now_ms(self) -> int:
        """Return the core's time."""
        return int(self.monotonic_s() * 1000)


@dataclass(frozen=True, slots=True)
class _Ground:
    """What was found and opened."""

    memory: Memory
    old_peers: Sequence[Address]
    keyring: Keyring
    places: Sequence[Place]
    resolver: Resolver
    answers: Answers
    doors: Doors | None
    listen: Address


async def assemble(surface: Surface) -> Parts:
    """Return everything, open and not yet running. MeshError; then nothing is left open."""
    options = surface.options
    async with AsyncExitStack() as undo:
        memory = Memory(options.data_dir, label=options.label, counters=surface.counters)
        kept = await memory.open()
        undo.push_async_callback(memory.close)
        places = parse_places(options.join)
        resolver = Resolver(surface.rng)
        keyring = await _keyring(options)
        answers = Answers()
        host = await _listen_host(options.listen_host, resolver)
        doors = None if is_closed(options) else await _doors(surface, host, keyring, answers)
        if doors is not None:
            undo.push_async_callback(doors.close)
        listen = Address(host, doors.port if doors else options.listen_port or DEFAULT_PORT)
        address = await advertised_address(options.advertise, host, listen.port, places, resolver)
        boot = first_boot(surface.wall_ms(), surface.rng, kept=kept.boot)
        await memory.keep_boot(boot)
        me = Identity(options.name, address, boot, pack_meta(options.meta))
        old_peers = seeds_of(kept, seeds_max=OLD_PEERS_MAX)
        ground = _Ground(memory, old_peers, keyring, places, resolver, answers, doors, listen)
        wiring = _Wiring(surface, ground, Swim(me, options.swim, surface.rng))
        if surface.shared is not None:
            undo.push_async_callback(surface.shared.close)
            await surface.shared.open(boot)
        parts = wiring.parts()
        undo.pop_all()
        return parts


class _Wiring:
    """Builds the parts, each with what it needs of the others."""

    def __init__(self, surface: Surface, ground: _Ground, swim: Swim) -> None:
        self._surface = surface
        self._ground = ground
        self._swim = swim
        self._driver: Driver | None = None
        shared = surface.shared
        self._conversations = StreamSessions(
            swim,
            label=surface.options.label,
            exchange_ms=surface.options.swim.stream_exchange_ms,
            now_ms=surface.now_ms,
            step=self._step,
            met=self._met,
            pieces=None if shared is None else shared.pieces,
            held=lambda: shared is None or shared.held,
        )
        self._seeds = Seeds(
            ground.places,
            [] if ground.doors is None else ground.old_peers,
            resolver=ground.resolver,
            around=DiscoveryContext(
                swim,
                listen=ground.listen,
                now_ms=surface.now_ms,
                step=self._step,
                join=self._conversations.join,
            ),
            rng=surface.rng,
            on_failure=self._seed_failed,
            finders=surface.finders,
        )
        self._carrier = None if shared is None else self._made_carrier(shared)

    def _made_carrier(self, shared: Replicated) -> GossipBridge:
        carrier = GossipBridge(
            shared,
            self._swim,
            seals=self._ground.keyring,
            journal=self._surface.journal,
            now_ms=self._surface.now_ms,
            step=self._step,
            nobody=lambda: self._ground.doors is None or not self._seeds.expected,
            expect=_expected(self._surface),
            post=self._post,
            conversations=self._conversations,
        )
        shared.connect(carrier)
        return carrier

    def parts(self) -> Parts:
        """Return all parts; peers are answered from now on."""
        ground, rotation = self._ground, self._rotation()
        if ground.doors is not None:
            self._driver = self._made_driver(ground.doors)
            self._conversations.connect(ground.doors.client, rotation)
            self._conversations.on(rotating.TOPIC, rotation.answer)
            ground.answers.open(self._conversations)
        return Parts(
            swim=self._swim,
            driver=self._driver,
            doors=ground.doors,
            keyring=ground.keyring,
            memory=ground.memory,
            seeds=self._seeds,
            conversations=self._conversations,
            rotation=rotation,
            now_ms=self._surface.now_ms,
            refresh=self._remember,
            members_changed=self._members_changed,
        )

    def _made_driver(self, doors: Doors) -> Driver:
        surface = self._surface
        listener = Listener(
            surface.journal,
            self._ground.memory,
            surface.counters,
            me=self._swim.name,
            now_ms=surface.now_ms,
            superseded=surface.superseded,
            lost_one=self._seeds.lost_one,
            moved=self._members_changed,
            shared=surface.shared,
        )
        return Driver(
            self._swim,
            surface.options.swim,
            socket=doors.datagrams,
            seals=self._ground.keyring,
            peers=self._conversations,
            tell=listener.hear,
            counters=surface.counters,
            monotonic_s=surface.monotonic_s,
            letters=self._letter_came,
        )

    def _rotation(self) -> Rotation:
        name, keyring = self._swim.name, self._ground.keyring

        async def ask(member: str, address: Address, payload: bytes) -> bytes:
            return await self._conversations.ask(
                member, address, rotating.TOPIC, payload, deadline_s=_RING_S
            )

        def changed(why: str) -> None:
            shown = keyring.fingerprints()
            text = f"the keyring has changed ({why}): {shown.primary} seals, {len(shown.all)} open"
            detail = {"why": why, "primary": shown.primary, "keys": " ".join(shown.all)}
            self._surface.journal.add("keyring_changed", name, text, detail=detail)
            if self._surface.shared is not None:
                self._surface.shared.look_around()

        ring = VersionedRing(keyring, self._surface.options.data_dir)
        return Rotation(ring, me=name, ask=ask, changed=changed)

    # ── What the parts tell each other ───────────────────────────────────────

    def _step(self, step: Step) -> None:
        if self._driver is not None:
            self._driver.step(step)

    def _met(self, name: str, *, full: bool, held: bool) -> None:
        first = not self._seeds.joined
        self._seeds.exchanged()
        if self._surface.shared is not None:
            self._surface.shared.met(name, full=full, held=held)
        if first:
            text = f"this node and {name} know what either knew: it is part of the mesh"
            detail = {"through": name}
            self._surface.journal.add("joined", self._swim.name, text, detail=detail)

    def _post(self, packet: bytes, to: Address) -> None:
        if self._driver is not None:
            self._driver.post(packet, to)

    def _letter_came(self, packet: bytes) -> None:
        if self._carrier is not None:
            self._carrier.letter_came(packet)

    def _members_changed(self) -> None:
        if self._carrier is not None:
            self._carrier.members_changed()

    def _seed_failed(self, seed: str, error: str) -> None:
        text = f"seed {seed} does not answer, trying on: {error}"
        self._surface.journal.add(
            "seed_failed", seed, text, level=logging.WARNING, detail={"error": error}
        )

    def _remember(self) -> None:
        """Bring the memory up to date: living members are kept, those that said goodbye are not."""
        now_ms, me = self._surface.wall_ms(), self._swim.name
        others = [member for member in self._swim.members() if member.name != me]
        living = [KeptPeer(one.name, one.address, now_ms) for one in others if not one.rank.gone]
        left = [one.name for one in others if one.rank is Rank.LEFT]
        self._ground.memory.remember(living, gone=left)


def _expected(surface: Surface) -> int:
    """Return how many nodes have to see each other before they are a cluster of their own."""
    options = surface.options
    if not (options.join or surface.finders):
        return 1
    return options.expect or max(2, len(options.join) // 2 + 1)


async def _keyring(options: MeshOptions) -> Keyring:
    disk = Threads("keys", threads_max=1)
    try:
        keyring = await disk.call(lambda: load_keys(options), timeout_s=_KEYS_S)
    except TimeoutError as error:
        raise MeshError(f"mesh-key: {options.key_file} cannot be read in {_KEYS_S} s") from error
    for warning in keyring.warnings:
        _log.warning("%s", warning)
    return keyring


async def _doors(surface: Surface, host: str, keyring: Keyring, answers: Answers) -> Doors:
    return await open_doors(
        host,
        surface.options.listen_port,
        stream_credentials(surface.options, keyring, surface.monotonic_s),
        answers,
        counters=surface.counters,
        monotonic_s=surface.monotonic_s,
    )


def parse_places(texts: Sequence[str]) -> list[Place]:
    """Return the seeds; MeshError names the first that is none."""
    try:
        return parse_seeds(texts)
    except ValueError as error:
        raise MeshError(f"join: {error}") from error


async def _listen_host(host: str, resolver: Resolver) -> str:
    """Return the numeric host to listen on."""
    if not host:
        return "0.0.0.0"
    numeric = numeric_host(host)
    if numeric is not None:
        return numeric
    try:
        place = parse_place(host, default_port=DEFAULT_PORT)
        return (await resolver.resolve(place)).addresses[0].host
    except (ValueError, ResolveError) as error:
        raise MeshError(f"cannot listen on {host!r}: {error}") from error
