"""State scenarios: calm and faults, dying registrars, full restarts, newcomers, long absence."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from smg_chaos.simulate.base.virtual_clock import MS, SECOND
from smg_chaos.simulate.cluster import settle, settled_cluster
from smg_chaos.simulate.hosts.host import Host
from smg_chaos.simulate.outcome import Figures
from smg_chaos.simulate.random_faults import Plan
from smg_chaos.simulate.replicas.replica_setting import StateSetting
from smg_chaos.simulate.scenarios.measure import any_host, cut, must_s, some_hosts, until_s
from smg_chaos.simulate.scenarios.scenario import Scenario, Target
from smg_chaos.simulate.world.world import World
from smg_mesh.config import ProfileName, StateOptions

if TYPE_CHECKING:
    from smg_chaos.simulate.replicas.replica_life import ReplicaLife
    from smg_chaos.simulate.replicas.shared_world import Commons

_CALM_WRITES: Final = 20
_DAY_MS: Final = 86_400_000
_REAL: Final = StateSetting(options=StateOptions())
_LARGE: Final = replace(_REAL, watchful=False)


def _plan(seed: int, nodes: int, profile: ProfileName) -> Plan:
    from smg_chaos.simulate.plans.replica_plans import random_state_plan

    return random_state_plan(seed, nodes=nodes, profile=profile)


def _commons(world: World) -> "Commons":
    assert world.commons is not None
    return world.commons


def _life(world: World, host: Host) -> "ReplicaLife":
    assert host.node is not None
    life = _commons(world).life(host.node)
    assert life is not None
    return life


def _all_well(world: World) -> None:
    """Note everything that is not as it must be."""
    from smg_chaos.simulate.replicas.agreement import differences

    for wrong in differences(_commons(world)):
        world.broken(wrong)


def _alike_s(world: World, *, limit_s: float) -> list[float]:
    """Return how long it takes until all replicas are alike, and no node is arriving any more."""
    return must_s(world, "replicas alike", lambda: _is_alike(world), limit_s=limit_s)


def _is_alike(world: World) -> bool:
    commons = _commons(world)
    return commons.agreed() and all(life.arrival.held for life in commons.lives())


def _add(world: World, host: Host, worker: str) -> None:
    from smg_mesh.state.workers.worker_registry import WorkerSpec

    life = _life(world, host)
    spec = WorkerSpec(url=f"grpc://{worker}:50051", model="m", labels={"rack": worker[-2:]})
    life.run(life.views.workers.add, worker, "api", spec)


def _remove(world: World, host: Host, worker: str) -> None:
    life = _life(world, host)
    life.run(life.views.workers.remove, worker)


def _set(world: World, host: Host, key: str, value: object) -> None:
    life = _life(world, host)
    life.run(lambda: life.views.settings.set(key, value, version=None))


def _workers_of(world: World) -> list[int]:
    return [len(life.views.workers.records()) for life in _commons(world).lives()]


# ── Calm ─────────────────────────────────────────────────────────────────────


def calm(world: World, nodes: int) -> Figures:
    """Change something now and then; see when all nodes know it, and when all digests are equal again."""
    settled_cluster(world, nodes)
    figures: Figures = {"everywhere_s": [], "alike_s": []}
    for number in range(_CALM_WRITES):
        host = any_host(world)
        worker, key = f"w{number}", f"s{number % 5}"
        if number % 2:
            _set(world, host, key, number)
            told = _shows_setting(world, key, number)
        else:
            _add(world, host, worker)
            told = _shows_worker(world, worker)
        figures["everywhere_s"] += must_s(world, f"write {number} everywhere", told, limit_s=10.0)
        world.run_for(int(world.chance.random() * 1_500 * MS))
    for host in some_hosts(world, min(3, nodes)):
        _set(world, host, "last", host.label)
    figures["alike_s"] += _alike_s(world, limit_s=30.0)
    _all_well(world)
    return figures


def _shows_setting(world: World, key: str, value: object) -> Callable[[], bool]:
    def shown() -> bool:
        views = [life.views.settings.get(key) for life in _commons(world).lives()]
        return all(one is not None and one.value == value for one in views)

    return shown


def _shows_worker(world: World, worker: str) -> Callable[[], bool]:
    return lambda: all(
        life.views.workers.get(worker) is not None for life in _commons(world).lives()
    )


# ── Nodes that go and come ───────────────────────────────────────────────────


def registrar_dies(world: World, nodes: int) -> Figures:
    """Kill the node that registered all workers; they stay, for it has no more right to them than others."""
    settled_cluster(world, nodes)
    registrar = any_host(world)
    count = 20
    for number in range(count):
        _add(world, registrar, f"w{number}")
    told = must_s(
        world, "workers everywhere", lambda: set(_workers_of(world)) == {count}, limit_s=10.0
    )
    world.chronicle.deed(world.agenda.now_us, registrar.label, "crashes")
    world.kill(registrar)
    missing = 0
    for _ in range(180):
        world.run_for(SECOND // 2)
        missing += sum(count - held for held in _workers_of(world))
    if world.chance.random() < 0.5:
        registrar.lose_disk()
    world.boot(registrar)
    back = must_s(
        world, "workers on the registrar", lambda: set(_workers_of(world)) == {count}, limit_s=20.0
    )
    settle(world, limit_s=20.0, announced=False)
    _alike_s(world, limit_s=10.0)
    _all_well(world)
    return {"everywhere_s": told, "missing_workers": [float(missing)], "back_s": back}


def restart_all(world: World, nodes: int) -> Figures:
    """Kill all at once and start them again from their disks, a few of which are lost."""
    settled_cluster(world, nodes)
    for number in range(60):
        _add(world, any_host(world), f"w{number}")
        if number % 3 == 0:
            _set(world, any_host(world), f"s{number}", number)
        world.run_for(20 * MS)
    _alike_s(world, limit_s=10.0)
    for number in range(0, 60, 7):
        _remove(world, any_host(world), f"w{number}")
    _alike_s(world, limit_s=10.0)
    held = set(_workers_of(world))
    world.run_for(int((_REAL.options.save_apart_ms + 2_000) * MS))
    for host in world.hosts.values():
        world.kill(host)
    for host in some_hosts(world, (nodes - 1) // 2):
        if world.chance.random() < 0.5:
            host.lose_disk()
    world.run_for(int(5 * world.chance.random() * SECOND))
    for host in world.hosts.values():
        world.run_for(int(world.chance.random() * 300 * MS))
        world.boot(host)
    since_us = world.agenda.now_us
    settle(world, limit_s=30.0, announced=False)
    _alike_s(world, limit_s=10.0)
    if set(_workers_of(world)) != held:
        world.broken(f"{held} workers before, {_workers_of(world)} after")
    _all_well(world)
    return {"back_s": [(world.agenda.now_us - since_us) / SECOND]}


def away(world: World, nodes: int) -> Figures:
    """Let a node be away for days, in which others remove what it holds; it brings nothing back.

    Days pass by setting all clocks on. Half of the seeds are longer than removals are remembered.
    """
    settled_cluster(world, nodes)
    for number in range(12):
        _add(world, any_host(world), f"w{number}")
    _alike_s(world, limit_s=10.0)
    absent = any_host(world)
    world.run_for(int((_REAL.options.save_apart_ms + 2_000) * MS))
    long = world.chance.random() < 0.5
    if not long:
        cut_off = cut(world, [absent])
        _set(world, absent, "written-alone", "kept")
        world.run_for(int((_REAL.options.save_apart_ms + 1_000) * MS))
        world.network.drop(cut_off)
    world.kill(absent)
    others = [host for host in world.hosts.values() if host is not absent]
    for number in range(6):
        _remove(world, others[number % len(others)], f"w{number}")
        _add(world, others[number % len(others)], f"new{number}")
    _alike_s(world, limit_s=10.0)
    for _ in range(3):
        # Three steps, so that removals are tidied up when they are half as old, and then forgotten.
        for host in world.hosts.values():
            host.clock_wrong_ms += (4 if long else 1) * _DAY_MS
        world.run_for(100 * SECOND)
    world.boot(absent)
    left = {f"w{number}" for number in range(6, 12)} | {f"new{number}" for number in range(6)}
    took = must_s(world, "all is back", lambda: _all_have(world, left), limit_s=40.0)
    settle(world, limit_s=30.0, announced=False)
    resurrected = sum(
        _life(world, host).views.workers.get(f"w{number}") is not None
        for host in world.hosts.values()
        for number in range(6)
    )
    _all_well(world)
    return {"back_s": took, "resurrected_workers": [float(resurrected)]}


def _all_have(world: World, workers: set[str]) -> bool:
    """Return whether exactly these workers exist everywhere, and all is alike."""
    lives = _commons(world).lives()
    ids = [{record.id for record in life.views.workers.records()} for life in lives]
    return _is_alike(world) and all(found == workers for found in ids)


# ── Much ─────────────────────────────────────────────────────────────────────


def join_10k(world: World, nodes: int) -> Figures:
    """Let a newcomer join a cluster that has ten thousand workers."""
    settled_cluster(world, nodes)
    count = 10_000
    _add_many(world, count)
    _alike_s(world, limit_s=60.0)
    newcomer = world.add_host("newcomer", seeds=("n0", "n1"))
    world.boot(newcomer)
    life = _life(world, newcomer)
    held = must_s(world, "all workers", lambda: len(life.views.workers) == count, limit_s=60.0)
    arrived = must_s(world, "arrived", lambda: life.arrival.held, limit_s=10.0)
    _alike_s(world, limit_s=10.0)
    _all_well(world)
    return {"held_s": held, "arrived_s": [held[0] + arrived[0]] if held and arrived else []}


def _add_many(world: World, count: int) -> None:
    """Let every node add its part, all at once."""
    hosts = list(world.hosts.values())
    for place, host in enumerate(hosts):
        life = _life(world, host)
        life.run(_adding, world, host, range(place, count, len(hosts)))


def _adding(world: World, host: Host, numbers: range) -> None:
    for number in numbers:
        _add(world, host, f"w{number:05}")


def keys_50k(world: World, nodes: int) -> Figures:
    """Let both sides of a cut write 50,000 keys in all; after healing all have them."""
    settled_cluster(world, nodes)
    hosts = list(world.hosts.values())
    rule = cut(world, hosts[: nodes // 2])
    _add_many(world, 50_000)
    world.run_for(5 * SECOND)
    world.network.drop(rule)
    took = until_s(
        world,
        lambda: set(_workers_of(world)) == {50_000} and _commons(world).agreed(),
        limit_s=90.0,
        step_ms=100,
    )
    if took is None:
        world.broken(f"50,000 keys did not converge: {_workers_of(world)}")
    _all_well(world)
    return {"alike_s": [] if took is None else [took]}


STATE: Final = (
    Scenario(
        name="state-calm",
        about="nodes change settings and workers; who knows it when",
        play=calm,
        state=_REAL,
        seeds=50,
        targets=(
            Target("everywhere_s", "p99", 0.5),
            Target("alike_s", "max", 2.0),
        ),
    ),
    Scenario(
        name="state-weather",
        about="random writes in random weather, on 3 to as many nodes as said, with forced epochs and old disks",
        plan=_plan,
        nodes=20,
        seeds=200,
        targets=(Target("calm_s", "p99", 2.0),),
    ),
    Scenario(
        name="registrar-dies",
        about="the node that registered all workers is killed; they stay, and it comes back",
        play=registrar_dies,
        state=_REAL,
        nodes=3,
        seeds=50,
        targets=(
            Target("everywhere_s", "p99", 0.5),
            Target("missing_workers", "sum", 0),
            Target("back_s", "p99", 2.0),
        ),
    ),
    Scenario(
        name="state-restart-all",
        about="all nodes are killed and start from their disks, some of which are lost",
        play=restart_all,
        state=_REAL,
        nodes=5,
        seeds=50,
        targets=(Target("back_s", "p99", 5.0),),
    ),
    Scenario(
        name="state-away",
        about="a node is away for days, within and beyond the time for which removals are kept",
        play=away,
        state=_REAL,
        nodes=4,
        seeds=50,
        targets=(
            Target("back_s", "p99", 5.0),
            Target("resurrected_workers", "sum", 0),
        ),
    ),
    Scenario(
        name="state-join-10k",
        about="a newcomer joins a cluster with ten thousand workers",
        play=join_10k,
        state=_LARGE,
        nodes=3,
        seeds=2,
        targets=(Target("arrived_s", "max", 10.0),),
    ),
    Scenario(
        name="state-50k",
        about="both sides of a cut write 50,000 keys in all; after healing all have them",
        play=keys_50k,
        state=_LARGE,
        nodes=4,
        seeds=1,
        targets=(Target("alike_s", "max", 60.0),),
    ),
)
