"""State events: changes of shared state by operators, sources and nodes, as values.

A deed whose node does not run, or is leaving, does nothing; so does one that no longer makes sense (drain
a worker that is not there). What a node refuses must have changed nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

import msgspec

from smg_chaos.simulate.base.virtual_clock import MS
from smg_chaos.simulate.hosts.host import Host
from smg_chaos.simulate.hosts.ports import HasAgenda, HasChronicle, HasHosts, HostPower
from smg_chaos.simulate.replicas.recorded_views import LOAD
from smg_mesh.crdt.namespace import StateError
from smg_mesh.state.workers.worker_keys import Listing
from smg_mesh.state.workers.worker_registry import WorkerSpec

if TYPE_CHECKING:
    from smg_chaos.simulate.replicas.replica_life import ReplicaLife
    from smg_chaos.simulate.replicas.shared_world import Commons

REGISTER_TTL_MS: Final = 30_000
Spoken: TypeAlias = Literal["api", "kubernetes", "dns"]
"""Sources that any node may speak for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddWorker:
    """A source says that a worker exists."""

    at_ms: int
    who: str
    worker: str
    source: Spoken
    priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListWorkers:
    """A node says which workers it lists in its own files, if it holds the cluster's state."""

    at_ms: int
    who: str
    source: Listing
    workers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveWorker:
    """An operator removes a worker."""

    at_ms: int
    who: str
    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropWorker:
    """A source does not know a worker any more."""

    at_ms: int
    who: str
    worker: str
    source: Spoken


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainWorker:
    """An operator drains a worker, or lets it work again."""

    at_ms: int
    who: str
    worker: str
    on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeWorker:
    """An operator changes a worker."""

    at_ms: int
    who: str
    worker: str
    priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSetting:
    """A setting gets a value of `size` characters.

    `checked`: only if it has the version that was seen on this node when a setting was touched there last.
    """

    at_ms: int
    who: str
    key: str
    size: int
    checked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveSetting:
    """A setting is taken away."""

    at_ms: int
    who: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BindKey:
    """A routing key is bound to a worker."""

    at_ms: int
    who: str
    key: str
    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TouchKey:
    """A bound routing key is used."""

    at_ms: int
    who: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    """A node says something that only it can say, for a while."""

    at_ms: int
    who: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Away:
    """A node is killed, and starts again `for_ms` later, with its disk, without it, or with an old one."""

    at_ms: int
    who: str
    for_ms: int
    disk: Literal["kept", "lost", "old"] = "kept"
    old_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SetClock:
    """A node's wall clock is wrong by so much from now on."""

    at_ms: int
    who: str
    wrong_ms: int


Deed: TypeAlias = (
    AddWorker
    | ListWorkers
    | RemoveWorker
    | DropWorker
    | DrainWorker
    | ChangeWorker
    | SetSetting
    | RemoveSetting
    | BindKey
    | TouchKey
    | Publish
    | Away
    | SetClock
)


class EventWorld(HasAgenda, HasChronicle, HasHosts, HostPower, Protocol):
    """The world in which operators and clients change shared state."""

    @property
    def commons(self) -> "Commons | None":
        """Its replicated state, if it has any."""
        ...


def plan_deed(world: EventWorld, deed: Deed) -> None:
    """Put a deed on the world's agenda."""
    world.agenda.deed(deed.at_ms * MS, _happen, world, deed)


def do_now(world: EventWorld, deed: Deed) -> bool:
    """Do a deed now; return whether a node did it, and did not refuse."""
    host = world.hosts.get(deed.who)
    act = _ON_HOSTS.get(type(deed))
    if act is not None:
        if host is not None:
            act(world, host, deed)
        return host is not None
    node = None if host is None else host.node
    if node is None or node.stopped or node.leaving or node.superseded:
        return False
    life = None if world.commons is None else world.commons.life(node)
    return False if life is None else _on_node(life, deed)


def _happen(world: EventWorld, deed: Deed) -> None:
    did = do_now(world, deed)
    if did:
        world.chronicle.deed(world.agenda.now_us, deed.who, described(deed))


def described(deed: Deed) -> str:
    """Return a deed in words."""
    fields = {name: getattr(deed, name) for name in deed.__slots__ if name not in ("at_ms", "who")}
    said = " ".join(f"{name} {value}" for name, value in fields.items())
    return f"{type(deed).__name__}: {said}"


def _on_node(life: "ReplicaLife", deed: Deed) -> bool:
    try:
        life.run(_ON_LIVES[type(deed)], life, deed)
    except LookupError:
        return False
    except StateError as refused:
        life.refused(refused)
        return False
    return True


# ── Workers ──────────────────────────────────────────────────────────────────


def _spec(worker: str, priority: int) -> WorkerSpec:
    return WorkerSpec(url=f"grpc://{worker}:50051", priority=priority)


def _add(life: "ReplicaLife", deed: AddWorker) -> None:
    life.views.workers.add(deed.worker, deed.source, _spec(deed.worker, deed.priority))
    if life.views.workers.get(deed.worker) is None:
        life.broken(f"added {deed.worker}, which is not there")


def _list(life: "ReplicaLife", deed: ListWorkers) -> None:
    if life.arrival.held:
        specs = {worker: _spec(worker, 50) for worker in deed.workers}
        life.views.workers.list_own(deed.source, specs)


def _remove(life: "ReplicaLife", deed: RemoveWorker) -> None:
    life.views.workers.remove(deed.worker)
    if life.views.workers.get(deed.worker) is not None:
        life.broken(f"removed {deed.worker}, which is still there")


def _drop(life: "ReplicaLife", deed: DropWorker) -> None:
    life.views.workers.drop(deed.worker, deed.source)


def _drain(life: "ReplicaLife", deed: DrainWorker) -> None:
    record = life.views.workers.drain(deed.worker, on=deed.on)
    if record.draining != deed.on:
        life.broken(f"set draining of {deed.worker} to {deed.on}, and it is not so")


def _change(life: "ReplicaLife", deed: ChangeWorker) -> None:
    record = life.views.workers.change(deed.worker, priority=deed.priority)
    if record.spec.priority != deed.priority:
        life.broken(f"gave {deed.worker} priority {deed.priority}, and it has another")


# ── Settings ─────────────────────────────────────────────────────────────────


def _set(life: "ReplicaLife", deed: SetSetting) -> None:
    settings = life.views.settings
    before = settings.get(deed.key)
    now = 0 if before is None else before.version
    value = f"{deed.at_ms}.{deed.who}".ljust(deed.size, ".")
    if not deed.checked:
        settings.set(deed.key, value, version=None)
    else:
        seen = life.remembered.get(deed.key, now)
        try:
            settings.set(deed.key, value, version=seen)
        except StateError as refused:
            if refused.reason == "stale" and seen == now:
                life.broken(f"refused {deed.key} as stale, which has the version {seen}")
            life.remembered[deed.key] = now
            raise
        if seen != now:
            life.broken(f"took {deed.key} for version {seen}, which has {now}")
    after = settings.get(deed.key)
    if after is None or after.value != value:
        life.broken(f"set {deed.key}, and it has another value")
    else:
        life.remembered[deed.key] = after.version


def _unset(life: "ReplicaLife", deed: RemoveSetting) -> None:
    life.views.settings.remove(deed.key, version=None)
    life.remembered.pop(deed.key, None)


# ── Keys and registers ───────────────────────────────────────────────────────


def _bind(life: "ReplicaLife", deed: BindKey) -> None:
    life.views.sticky.put(deed.key, deed.worker.encode())


def _touch(life: "ReplicaLife", deed: TouchKey) -> None:
    life.views.sticky.touch(deed.key)


def _publish(life: "ReplicaLife", deed: Publish) -> None:
    said = Published(deed.key, life.now_us)
    life.published[deed.key] = said.at_us
    content = msgspec.msgpack.encode(said)
    life.views.registers.set(LOAD, deed.key, content, ttl_ms=REGISTER_TTL_MS)


class Published(msgspec.Struct, frozen=True, array_like=True):
    """The content of a simulated node's register."""

    key: str
    at_us: int


def read_published(content: bytes) -> Published:
    """Return what a register says."""
    return msgspec.msgpack.decode(content, type=Published)


# ── Hosts ────────────────────────────────────────────────────────────────────


def _away(world: EventWorld, host: Host, deed: Away) -> None:
    world.kill(host)
    world.agenda.deed(world.agenda.now_us + deed.for_ms * MS, _back, world, host, deed)


def _back(world: EventWorld, host: Host, deed: Away) -> None:
    if host.node is not None:
        return
    told = "starts again"
    if deed.disk == "lost":
        host.lose_disk()
        told += " without its disk"
    elif deed.disk == "old":
        to_us = world.agenda.now_us - (deed.for_ms + deed.old_ms) * MS
        told += " with an old disk" if host.disk.archive.turn_back(to_us) else ""
    world.chronicle.deed(world.agenda.now_us, host.label, told)
    world.boot(host)


def _set_clock(world: EventWorld, host: Host, deed: SetClock) -> None:
    host.clock_wrong_ms = deed.wrong_ms


_ON_LIVES: Final[Mapping[type, Callable[[Any, Any], None]]] = MappingProxyType(
    {
        AddWorker: _add,
        ListWorkers: _list,
        RemoveWorker: _remove,
        DropWorker: _drop,
        DrainWorker: _drain,
        ChangeWorker: _change,
        SetSetting: _set,
        RemoveSetting: _unset,
        BindKey: _bind,
        TouchKey: _touch,
        Publish: _publish,
    }
)
_ON_HOSTS: Final[Mapping[type, Callable[[Any, Any, Any], None]]] = MappingProxyType(
    {Away: _away, SetClock: _set_clock}
)
