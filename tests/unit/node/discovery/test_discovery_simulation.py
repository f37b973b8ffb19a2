"""Simulation of discovery: nodes, cuts, pauses, outages and pods that come and go, on virtual time.

At the end the registry is what there is, on every node; and at no step is a worker dropped that was there all the time.
"""

import pytest

from smg_node.discovery.sighting import Sighting, SightingState
from support.discovery_world import KIND, DiscoveryWorld, WorldNode

READY, UNREADY, LEAVING = SightingState.READY, SightingState.UNREADY, SightingState.LEAVING
HOSTS = tuple(f"h{number}" for number in range(8))
LAG_MS = 1_000
"""A source tells what happened at most so late, and what it tells is written soon."""


class Watchdog:
    """Looks at every write: nothing may be dropped that was there since it was written."""

    def __init__(self, world: DiscoveryWorld) -> None:
        self._world = world
        self.put_ms: dict[str, int] = {}
        self.drops = self.puts = 0
        for node in world.nodes.values():
            self._wrap(node)

    def _wrap(self, node: WorldNode) -> None:
        put, drop = node.findings.put, node.findings.drop

        def watched_put(kind: str, name: str, sighting: Sighting, *, keep: bool = False) -> None:
            put(kind, name, sighting, keep=keep)
            self.put_ms[sighting.endpoint] = self._world.now_ms
            self.puts += 1

        def watched_drop(kind: str, endpoint: str) -> None:
            drop(kind, endpoint)
            self.drops += 1
            host = endpoint.removesuffix(":1")
            there = host in self._world.truth.pods
            absent_ms = self._world.absent_ms.get(host, 0) if there else self._world.now_ms
            assert absent_ms >= self.put_ms[endpoint] - LAG_MS, f"{node.name} dropped {endpoint}"

        node.findings.put = watched_put  # type: ignore[method-assign]  # watched by this test
        node.findings.drop = watched_drop  # type: ignore[method-assign]  # watched by this test


def churn(world: DiscoveryWorld, uids: list[int]) -> None:
    """Let something happen to a pod."""
    host = world.rng.choice(HOSTS)
    pod = world.truth.pods.get(host)
    if pod is None:
        uids[0] += 1
        world.change(host, (world.rng.choice((READY, UNREADY)), f"u{uids[0]}"))
        return
    state, uid = pod
    what = world.rng.random()
    if what < 0.25 or state is LEAVING:
        world.change(host, None)
    elif what < 0.35:
        uids[0] += 1
        world.change(host, (READY, f"u{uids[0]}"))
    elif what < 0.5:
        world.change(host, (LEAVING, uid))
    else:
        world.change(host, (UNREADY if state is READY else READY, uid))


def trouble(world: DiscoveryWorld) -> None:
    """Cut nodes off from each other or from the source, pause them, or let all be well."""
    names = list(world.names)
    world.rng.shuffle(names)
    what = world.rng.random()
    if what < 0.25:
        at = world.rng.randrange(1, len(names))
        world.cut(set(names[:at]), set(names[at:]))
    elif what < 0.45:
        world.truth.away_for = set(names[: world.rng.randrange(1, len(names) + 1)])
    elif what < 0.55:
        world.pause(names[0])
    elif what < 0.62:
        world.truth.silent_for = set(names[:1])
    elif what < 0.68:
        world.answering = not world.answering
    else:
        world.heal()
        world.truth.away_for, world.truth.silent_for = set(), set()


def simulate(seed: int) -> Watchdog:
    """Run one history and hold its end against what there is."""
    names = [f"n{number}" for number in range(2 + seed % 4)]
    world = DiscoveryWorld(*names, seed=seed)
    watchdog, uids = Watchdog(world), [0]
    for host in HOSTS[:5]:
        churn(world, uids)
        assert host
    for _ in range(60):
        for _ in range(world.rng.randrange(3)):
            churn(world, uids)
        if world.rng.random() < 0.3:
            trouble(world)
        world.pass_time(world.rng.randrange(1, 8) * 1_000)
    world.heal()
    world.truth.away_for, world.truth.silent_for = set(), set()
    world.answering = True
    if not world.truth.pods:
        world.change("h0", (READY, "last"))
    world.pass_time(200_000)
    for host, (state, _) in list(world.truth.pods.items()):
        # One that leaves was never new to anybody who saw it leave.
        if state is LEAVING:
            world.change(host, None)
    world.pass_time(100_000)
    for name in names:
        assert world.registered(name) == world.wanted(), (seed, name)
        assert set(world[name].findings.known(KIND)) == {f"{host}:1" for host in world.wanted()}
    writers = [name for name in names if world[name].run.writing]
    assert len(writers) == 1
    assert sum(world[name].source.watching for name in names) <= 2
    return watchdog


@pytest.mark.parametrize("seed", range(20))
def test_at_the_end_the_registry_is_what_there_is_and_nothing_went_without_evidence(
    seed: int,
) -> None:
    watchdog = simulate(seed)
    assert watchdog.puts > 5


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1_000, 1_100))
def test_a_hundred_more_histories_end_well(seed: int) -> None:
    watchdog = simulate(seed)
    assert watchdog.puts > 5
