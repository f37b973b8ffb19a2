"""Mesh, the front door: one object, one node's place among its peers.

    mesh = Mesh(options, rng=…, wall_ms=…, monotonic_s=…)
    await mesh.start()       # sockets are bound, the boot is chosen and kept; MeshError says what is wrong
    await mesh.run()         # a task of the caller's: until cancelled, or until `leave` or `stop`
    await mesh.leave()       # says goodbye, at most a second, and stops

A node without a key file that is not insecure on purpose is *closed*: it has no sockets, its only member
is itself, and everything else works. So does a node whose disk is full, whose name servers are dead or
whose seeds are all gone: none of it keeps a node from serving, and `status` tells.

What the nodes share (`shared.Shared`) is the caller's: it is opened by `start`, run by `run`, and closed by
`stop`, and the mesh carries what it says.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from smg_mesh.config import MeshOptions
from smg_mesh.io.assembly import Surface, assemble
from smg_mesh.io.counters import Counters
from smg_mesh.io.discovery.seed_finder import FindError, SeedFinder
from smg_mesh.io.discovery.seed_search import parse_seeds
from smg_mesh.io.errors import MeshError
from smg_mesh.io.event_journal import Journal
from smg_mesh.io.mesh_parts import Parts
from smg_mesh.io.network.listen_sockets import check, is_closed
from smg_mesh.io.security.key_rotation import Operation
from smg_mesh.io.security.ring_key import make_key
from smg_mesh.io.security.rotation_report import KeyringReport
from smg_mesh.io.stream_sessions import Reply, StreamSessions
from smg_mesh.io.streams import AskError
from smg_mesh.io.views import (
    EventKind,
    MemberView,
    MeshEvent,
    MeshStatus,
    Meta,
    SeedView,
    member_view,
    pack_meta,
)
from smg_mesh.swim.effects import Rng
from smg_mesh.swim.messages import Address

if TYPE_CHECKING:
    from smg_mesh.shared import Shared

__all__ = [
    "Address",
    "AskError",
    "EventKind",
    "FindError",
    "KeyringReport",
    "MemberView",
    "Mesh",
    "MeshError",
    "MeshEvent",
    "MeshStatus",
    "SeedFinder",
    "SeedView",
    "make_key",
]

FAREWELL_S: Final = 1.0
WARN_S: Final = 60.0
_FAREWELL_LOOK_S: Final = 0.01

_log = logging.getLogger("smg_mesh")


class Mesh:
    """This node as a member."""

    def __init__(
        self,
        options: MeshOptions,
        *,
        rng: Rng,
        wall_ms: Callable[[], int],
        monotonic_s: Callable[[], float],
        shared: "Shared | None" = None,
        finders: Sequence[SeedFinder] = (),
    ) -> None:
        """`finders` are asked for peers besides those to join, from `run` on, and closed when it ends."""
        self.superseded = asyncio.Event()
        """Set when another living process keeps this node's name: drain, and exit."""
        self.closed = is_closed(options)
        """No key file and not insecure: this node neither joins nor can be joined."""
        self._options = options
        self._rng = rng
        self._wall_ms = wall_ms
        self._monotonic_s = monotonic_s
        self._shared = shared
        self._finders = tuple(finders)
        self._counters = Counters()
        self._journal = Journal(wall_ms=wall_ms)
        self._answers: dict[str, Reply] = {}
        self._meta: Meta = dict(options.meta)
        self._parts: Parts | None = None
        self._started_s = 0.0
        self._leaving = False
        self._stopping = asyncio.Event()
        self._ended = asyncio.Event()
        self._ended.set()

    # ── Its life ─────────────────────────────────────────────────────────────

    async def start(self) -> None:
        """Bind the sockets, remember the last life, begin this one. MeshError names what cannot be.

        Afterwards `members` and the rest answer, and peers may already call; `run` does the gossip.
        """
        assert self._parts is None
        check(self._options)
        self._parts = await assemble(
            Surface(
                options=self._options,
                rng=self._rng,
                wall_ms=self._wall_ms,
                monotonic_s=self._monotonic_s,
                counters=self._counters,
                journal=self._journal,
                superseded=self.superseded,
                shared=self._shared,
                finders=self._finders,
            )
        )
        for topic, reply in self._answers.items():
            self._parts.conversations.on(topic, reply)
        self._started_s = self._monotonic_s()
        _log.info(
            "this node is %s at %s in the mesh %s, %s",
            self.name,
            self.address,
            self._options.label,
            self._security(),
            extra={"fields": {"event": "mesh_started", "boot": self.boot}},
        )

    async def run(self) -> None:
        """Gossip, search and remember until cancelled, or until `leave` or `stop`."""
        parts = self._on
        self._ended.clear()
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._warn())]
                tasks += [group.create_task(part) for part in parts.loops()]
                if self._shared is not None:
                    tasks.append(group.create_task(self._shared.run()))
                await self._stopping.wait()
                for task in tasks:
                    task.cancel()
        finally:
            self._ended.set()

    async def leave(self) -> None:
        """Say goodbye to all members, which takes at most a second, and stop."""
        parts = self._on
        self._leaving = True
        silent = self.closed or self.superseded.is_set() or self._ended.is_set()
        if not silent:
            if self._shared is not None:
                self._shared.rights.leave()
            parts.perform(parts.swim.leave(now_ms=parts.now_ms()))
            try:
                async with asyncio.timeout(FAREWELL_S):
                    while not parts.swim.farewell_over:  # noqa: ASYNC110 (the core sets no events)
                        await asyncio.sleep(_FAREWELL_LOOK_S)
            except TimeoutError:
                _log.info("not everybody may have heard the goodbye")
        await self.stop()

    async def stop(self) -> None:
        """End `run`, close the sockets, keep what is to be kept. Safe at any time, and twice."""
        self._stopping.set()
        await self._ended.wait()
        if self._parts is not None:
            await self._parts.close()
            if self._shared is not None:
                await self._shared.close()
        self._journal.close()

    async def _warn(self) -> None:
        """Warn again and again that any host on the network can read and join."""
        while True:
            if self._options.insecure:
                _log.warning(
                    "the mesh is insecure: anybody who reaches %s can read it and join it",
                    self.address,
                )
            await asyncio.sleep(WARN_S)

    @property
    def _on(self) -> Parts:
        if self._parts is None:
            raise MeshError("the mesh is not started")
        return self._parts

    # ── What it is ───────────────────────────────────────────────────────────

    @property
    def name(self) -> str:
        """This node's name."""
        return self._options.name

    @property
    def address(self) -> Address:
        """What peers are told."""
        return self._on.swim.address

    @property
    def boot(self) -> int:
        """The number of this life."""
        return self._on.swim.boot

    def members(self) -> tuple[MemberView, ...]:
        """Return every row of the table: this node first, the others by name."""
        parts = self._on
        now_ms, wall_ms = parts.now_ms(), self._wall_ms()
        health = parts.swim.health_score
        return tuple(
            member_view(member, me=self.name, health=health, now_ms=now_ms, wall_ms=wall_ms)
            for member in parts.swim.members()
        )

    def status(self) -> MeshStatus:
        """Return the mesh as this node sees it."""
        parts = self._on
        swim = parts.swim
        return MeshStatus(
            label=self._options.label,
            name=self.name,
            boot=swim.boot,
            incarnation=swim.incarnation,
            address=str(swim.address),
            members=parts.members_by_state(),
            joined=parts.seeds.joined,
            isolated=swim.isolated,
            closed=self.closed,
            degraded=tuple(self._troubles()),
            encrypted=parts.keyring.encrypted,
            wire_version=parts.wire_version,
            digest=swim.digest().hex(),
            health=swim.health_score,
            seeds=parts.seed_views(),
            keys=parts.keyring.fingerprints().all,
            held=self._holds_state(),
            documents="" if self._shared is None else self._shared.digest(),
        )

    def ready(self) -> str | None:
        """Return None, or the reason why this node should not get traffic yet or any more."""
        parts = self._on
        if self._leaving:
            return "leaving"
        if self.superseded.is_set():
            return "another process has this name"
        if parts.swim.isolated:
            return "isolated: this node hears nobody"
        if self._monotonic_s() - self._started_s < self._options.join_grace_s:
            return self._joining()
        return None

    def events(self, after: int = 0) -> Sequence[MeshEvent]:
        """Return the events with a larger id that are kept (4096), oldest first."""
        return self._journal.events(after)

    def watch(self, after: int = 0) -> AsyncIterator[MeshEvent]:
        """Iterate over events with a larger id as they come, until this node stops."""
        return self._journal.watch(after)

    def counters(self) -> Mapping[tuple[str, str], int]:
        """Return (name, detail) → how often, since the start; what is shared counts for itself."""
        return self._counters.all()

    def _joining(self) -> str | None:
        """Return what this node still waits for, None once it is part of the cluster."""
        seeds = self._on.seeds
        if not self.closed and seeds.expected and not seeds.joined:
            return "joining: no seed has answered yet"
        return None if self._holds_state() else "joining: the cluster's state is not here yet"

    def _holds_state(self) -> bool:
        return self._shared is None or self._shared.held

    def _troubles(self) -> list[str]:
        """Return why all is not well."""
        parts = self._on
        troubles = []
        if self.closed:
            troubles.append("closed: no mesh key, so this node neither joins nor can be joined")
        if self.superseded.is_set():
            troubles.append("another process has this name")
        if parts.swim.isolated:
            troubles.append("isolated: this node hears nobody")
        joining = self._joining()
        if joining is not None:
            troubles.append(joining)
        return troubles

    def _security(self) -> str:
        if self.closed:
            return "closed: without a mesh key it neither joins nor can be joined"
        return "encrypted" if self._on.keyring.encrypted else "insecure"

    # ── What it may be told ──────────────────────────────────────────────────

    def join(self, peers: Sequence[str]) -> None:
        """Search for these too, for ever. ValueError if one is nonsense, MeshError if closed."""
        places = parse_seeds(peers)
        if self.closed:
            raise MeshError("this node is closed: joining needs a mesh key, or insecure-mesh")
        self._on.seeds.add(places)

    def set_meta(self, **values: str | int | bool) -> None:
        """Change what this node says of itself; all members hear it.
        ValueError above 512 bytes packed.
        """
        parts = self._on
        meta = {**self._meta, **values}
        packed = pack_meta(meta)
        self._meta = meta
        parts.perform(parts.swim.change_meta(packed, now_ms=parts.now_ms()))

    def forget(self, name: str) -> None:
        """Drop the row of a member that is dead or left. LookupError if
        unknown, ValueError if not gone.
        """
        parts = self._on
        parts.perform(parts.swim.forget(name, now_ms=parts.now_ms()))
        parts.memory.remember((), gone=[name])
        parts.members_changed()
        if self._shared is not None:
            self._shared.look_around()

    async def keyring(
        self, operation: Operation, key: str = "", *, force: bool = False
    ) -> KeyringReport:
        """Do one step of a rotation with all living members, and return who holds what.

        `key` is a key for `install` and a fingerprint for `use` and `remove`. MeshError if the step
        is refused, also because not all acknowledge it, or because shared secrets need the key to
        be removed; `force` does it for those that do.
        """
        parts = self._on
        if operation == "remove" and not force:
            self._check_unneeded(key)
        others = [
            (member.name, member.address)
            for member in parts.swim.members()
            if not member.rank.gone and member.name != self.name
        ]
        return await parts.rotation.operate(operation, key, others, force=force)

    def _check_unneeded(self, fingerprint: str) -> None:
        """MeshError if secrets would be lost with that key: they are sealed anew seconds after another is used."""
        needed = 0 if self._shared is None else self._shared.sealed_with(fingerprint)
        if needed:
            raise MeshError(
                f"remove refused: {needed} API keys of workers are sealed with {fingerprint} still; use"
                " another key, and they are sealed with that one by the nodes that are up, within seconds"
            )

    def answer(self, topic: str, reply: Reply) -> None:
        """Answer questions about `topic` with `reply(payload, who asks)`, from now on."""
        if self._parts is not None:
            self._parts.conversations.on(topic, reply)
        self._answers[topic] = reply

    async def ask(self, name: str, topic: str, payload: bytes, *, deadline_s: float = 5.0) -> bytes:
        """Return what the member `name` (or this node itself) answers.

        LookupError if the name is unknown; AskError says why there is no answer.
        """
        parts = self._on
        if name == self.name:
            return await _within(parts.conversations, topic, payload, name, deadline_s=deadline_s)
        member = parts.swim.member(name)
        if member is None:
            raise LookupError(f"no member is called {name!r}")
        if member.rank.gone:
            raise AskError("unreachable", f"{name} is gone")
        return await parts.conversations.ask(
            name, member.address, topic, payload, deadline_s=deadline_s
        )


async def _within(
    conversations: StreamSessions, topic: str, payload: bytes, me: str, *, deadline_s: float
) -> bytes:
    """Answer this node's own question as a peer's would be."""
    try:
        async with asyncio.timeout(deadline_s):
            return await conversations.answer(topic, payload, me)
    except TimeoutError as error:
        raise AskError("timeout", f"{topic}: no answer in {deadline_s} s") from error
