import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from smg_mesh.io.security.keyring import Keyring
from smg_mesh.io.security.ring_key import RingKey
from smg_mesh.shared import CacheRow, LimitRule, SessionRow, Shared, StateError, WorkerSpec
from smg_node.cluster.mcp.server_service import ClusterServers
from smg_node.cluster.workers.shared_verdicts import SharedVerdicts
from smg_node.processes.ipc.control_bus import Bus
from smg_node.processes.ipc.data_uplink import Uplink
from smg_node.processes.replication.node_copy import SERVES_ALONE_S, NodeCopy, why_not_ready
from smg_node.processes.replication.state_messages import CACHE_ROWS, SESSION_ROWS, STICK, Node
from smg_node.processes.replication.state_publisher import (
    CACHE_ROWS_MAX,
    SESSION_ROWS_MAX,
    Publishing,
)
from smg_node.system_clock import SystemClock
from support.mcp.tool_desks import shared_servers
from support.mesh.shared_state_members import make_shared


class Wire:
    """A bus and an uplink in one: what is told by one end is taken by the other at once."""

    process = "1-11"

    def __init__(self) -> None:
        self.up: dict[str, Callable[[str, bytes], None]] = {}
        self.down: dict[str, Callable[[bytes], None]] = {}
        self.begins: list[Callable[[str], None]] = []
        self.ends: list[Callable[[], None]] = []
        self.begun_anew = 0
        self.lost = 0

    def link(self) -> None:
        for begin in self.begins:
            begin(self.process)

    def cut(self) -> None:
        for end in self.ends:
            end()

    def begin_anew(self) -> None:
        self.begun_anew += 1


class BusEnd:
    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    def on(self, name: str, taker: Callable[[str, bytes], None]) -> None:
        self.wire.up[name] = taker

    def opened(self, heard: Callable[[str], None]) -> None:
        self.wire.begins.append(heard)

    def closed(self, heard: Callable[[str], None]) -> None:
        self.wire.ends.append(lambda: heard(self.wire.process))

    def died(self, heard: Callable[[str], None]) -> None:
        self.wire.ends.append(lambda: heard(self.wire.process))

    def tell(self, process: str, name: str, payload: bytes) -> None:
        if self.wire.lost:
            self.wire.lost -= 1
            return
        self.wire.down[name](payload)


class UplinkEnd:
    process = Wire.process

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    def on(self, name: str, taker: Callable[[bytes], None]) -> None:
        self.wire.down[name] = taker

    def opened(self, heard: Callable[[], None]) -> None:
        self.wire.begins.append(lambda _process: heard())

    def closed(self, heard: Callable[[], None]) -> None:
        self.wire.ends.append(heard)

    def tell(self, name: str, payload: bytes) -> None:
        self.wire.up[name](self.process, payload)

    def begin_anew(self) -> None:
        self.wire.begin_anew()


class LaterClock(SystemClock):
    later_s = 0.0

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self.later_s


class World:
    """A control process's state and what a data process has of it."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.wire = Wire()
        self.clock = LaterClock()
        self.node = Node(held=True, living=("n1", "n2"))
        self.publishing = Publishing(
            shared,
            cast("Bus", BusEnd(self.wire)),
            node=lambda: self.node,
            monotonic_s=self.clock.monotonic_s,
        )
        self.copy = NodeCopy("n1", cast("Uplink", UplinkEnd(self.wire)), self.clock)

    async def told(self) -> None:
        """Let what changed be told."""
        async with asyncio.TaskGroup() as group:
            running = group.create_task(self.publishing.run())
            await asyncio.sleep(0.03)
            running.cancel()

    def same(self) -> None:
        """Assert that both have the same."""
        shared, copy = self.shared, self.copy
        assert list(copy.workers.records()) == list(shared.workers.records())
        assert list(copy.settings.all()) == list(shared.settings.all())
        assert list(copy.keys.records()) == list(shared.keys.records())
        assert list(copy.limits.rules()) == list(shared.limits.rules())


@pytest.fixture
async def world() -> Any:
    shared = make_shared("n1")
    await shared.open()
    yield World(shared)
    await shared.close()


def add(shared: Shared, name: str, **more: Any) -> None:
    shared.workers.add(name, "api", WorkerSpec(url=f"grpc://127.0.0.1:{9000 + len(name)}", **more))


async def test_a_copy_begins_with_all_there_is_and_follows_what_changes(world: World) -> None:
    add(world.shared, "w1")
    world.shared.settings.set("routing.policy", "random", version=None)
    world.shared.limits.put(LimitRule(tenant="a", concurrency=7), version=None)
    world.wire.link()
    assert world.copy.arrived.is_set()
    world.same()
    add(world.shared, "w22")
    world.shared.workers.change("w1", priority=7)
    world.shared.workers.drain("w22", on=True)
    world.shared.settings.remove("routing.policy", version=None)
    await world.told()
    world.same()
    world.shared.workers.remove("w1")
    await world.told()
    world.same()
    assert [one.id for one in world.copy.workers.records()] == ["w22"]


async def test_a_new_link_takes_back_what_is_gone_meanwhile(world: World) -> None:
    add(world.shared, "w1")
    add(world.shared, "w22")
    world.wire.link()
    heard: list[str] = []
    world.copy.workers.watch(heard.extend)
    world.wire.cut()
    world.shared.workers.remove("w1")
    assert [one.id for one in world.copy.workers.records()] == ["w1", "w22"]
    world.wire.link()
    world.same()
    assert heard == ["w1"], "what is as it was is no news"


async def test_servers_of_tools_come_with_their_secrets_opened_and_go_again(world: World) -> None:
    shared, copy = world.shared, world.copy
    here, there = shared_servers(shared), shared_servers(copy)
    service = ClusterServers(here, shared.providers, shared.seal, world.clock)
    world.wire.link()
    assert not there.has()
    body = {"url": "https://docs.example/", "auth": {"kind": "bearer", "token": "sesame-1"}}
    service.put("docs", body, version=None)
    await world.told()
    assert there.has()
    assert there.read() == here.read_anew()
    assert there.read().servers["docs"].secrets == {"token": "sesame-1"}
    service.remove("docs", version=None)
    await world.told()
    assert (there.has(), there.get()) == (False, None)


async def test_secrets_of_workers_come_opened_and_only_those_of_workers(world: World) -> None:
    sealed = world.shared.seal("s3cret")
    add(world.shared, "w1", sealed_key=sealed)
    world.wire.link()
    assert world.copy.open_secret(sealed) == "s3cret"
    assert world.copy.open_secret(world.shared.seal("other")) is None


async def test_processes_hear_what_all_others_have_open_and_the_node_says_the_sum(
    world: World,
) -> None:
    add(world.shared, "w1")
    world.wire.link()
    world.copy.load.publish({"w1": (2, 20)})
    world.publishing.publish({"w1": (1, 10)})
    await world.told()
    assert world.copy.load.other("w1") == (1, 10)
    assert world.publishing.other("w1") == (2, 20)
    assert world.publishing.calls.total == {"w1": (3, 30)}
    world.wire.cut()
    assert world.publishing.other("w1") == (0, 0), "what a dead process had open is open no more"


async def test_a_key_that_is_bound_here_is_bound_everywhere(world: World) -> None:
    world.wire.link()
    assert STICK in world.wire.up
    world.copy.sticky.bind("00112233445566aa", "w1", "why")
    assert world.shared.sticky.worker_of("00112233445566aa") == "w1"
    world.shared.sticky.bind("00112233445566aa", "w2", "moved")
    await world.told()
    assert world.copy.sticky.worker_of("00112233445566aa") == "w2"
    assert (world.copy.sticky.keys_at("w1"), world.copy.sticky.keys_at("w2")) == (0, 1)
    world.copy.sticky.release("00112233445566aa")
    assert world.shared.sticky.worker_of("00112233445566aa") is None


async def test_rows_of_caches_go_both_ways_and_a_copy_that_nobody_follows_waits_with_them(
    world: World,
) -> None:
    shared, copy = world.shared.prompt_caches, world.copy.prompt_caches
    for at in range(CACHE_ROWS_MAX + 1):
        shared.put(CacheRow(at, 9, 2, life_ms=300_000))
    world.wire.link()
    shared.remove(0, 9)
    shared.put(CacheRow(1, 9, 3, life_ms=300_000))
    await world.told()
    heard: dict[int, CacheRow] = {}

    def follow(rows: Sequence[CacheRow]) -> None:
        heard.update({row.beginning: row for row in rows})

    copy.follow(follow)
    assert len(heard) == CACHE_ROWS_MAX
    assert (0 in heard, heard[1].state, heard[2].state) == (False, 3, 2)
    copy.put(CacheRow(7_000_000, 8, 1, life_ms=300_000))
    assert [row.scope for row in shared.rows() if row.beginning == 7_000_000] == [8]
    copy.remove(2, 9)
    await world.told()
    assert heard[2].life_ms == 0
    assert heard[7_000_000].until_ms > 0


async def test_without_rows_of_caches_nothing_is_said_of_them(world: World) -> None:
    told: list[str] = []
    world.wire.down[CACHE_ROWS] = lambda _content: told.append("rows")
    world.wire.link()
    await world.told()
    assert told == []


async def test_rows_of_sessions_go_both_ways(world: World) -> None:
    shared, copy = world.shared.tool_sessions, world.copy.tool_sessions
    for at in range(SESSION_ROWS_MAX + 1):
        shared.put(SessionRow(f"{at}", b"of a node", life_ms=300_000))
    world.wire.link()
    assert len(copy) == SESSION_ROWS_MAX + 1
    here = copy.put(SessionRow("0", b"of this process", life_ms=300_000))
    assert copy.get("0") == here
    there = shared.get("0")
    assert there is not None
    assert there.content == b"of this process"
    shared.put(SessionRow("0", b"of a node again", life_ms=300_000))
    shared.remove("1")
    await world.told()
    found = copy.get("0")
    assert found is not None
    assert (found.content, found.until_ms > 0) == (b"of a node again", True)
    assert copy.get("1") is None
    copy.remove("2")
    assert (copy.get("2"), shared.get("2")) == (None, None)


async def test_a_row_of_a_session_that_is_over_is_not_there(world: World) -> None:
    copy = world.copy.tool_sessions
    world.wire.link()
    copy.put(SessionRow("other", b"x", life_ms=300_000))
    copy.put(SessionRow("k", b"x", life_ms=1))
    assert copy.get("other") is not None
    await asyncio.sleep(0.01)
    assert (copy.get("k"), len(copy)) == (None, 1)
    lasting = copy.put(SessionRow("k", b"x", life_ms=300_000))
    assert copy.put(SessionRow("k", b"y", life_ms=1)).until_ms >= lasting.until_ms


async def test_without_rows_of_sessions_nothing_is_said_of_them(world: World) -> None:
    told: list[str] = []
    world.wire.down[SESSION_ROWS] = lambda _content: told.append("rows")
    world.wire.link()
    await world.told()
    assert told == []


async def test_a_gap_in_what_is_told_begins_anew(world: World) -> None:
    world.wire.link()
    world.wire.lost = 1
    add(world.shared, "w1")
    await world.told()
    add(world.shared, "w22")
    await world.told()
    assert world.wire.begun_anew == 1
    assert not len(world.copy.workers), "what does not follow is not taken"
    world.wire.link()
    world.same()


async def test_a_data_process_is_never_in_charge_of_looking_at_a_worker(world: World) -> None:
    world.wire.link()
    outlook = SharedVerdicts(world.copy, heard=lambda _ids: None)
    for number in range(50):
        assert outlook.me not in outlook.probers(f"w{number}")


async def test_without_a_control_process_verdicts_count_for_a_while_and_readiness_longer(
    world: World,
) -> None:
    add(world.shared, "w1")
    world.shared.verdicts.publish("w1", up=True, reason="", ttl_ms=60_000)
    world.wire.link()
    assert [one.up for one in world.copy.verdicts.of("w1")] == [True]
    world.wire.cut()
    assert world.copy.verdicts.of("w1")
    world.clock.later_s = 16.0
    assert not world.copy.verdicts.of("w1")
    assert not why_not_ready(world.copy)
    world.clock.later_s = SERVES_ALONE_S + 1
    assert why_not_ready(world.copy) == ("there has been no control process for 61 s",)
    world.wire.link()
    assert not why_not_ready(world.copy)


async def test_a_thought_is_sealed_by_a_data_process_and_opened_by_any_other_through_rotations() -> (
    None
):
    keys = [RingKey(bytes([number]) * 32) for number in (1, 2)]
    rings = [Keyring(keys[:1], "blue") for _ in range(2)]
    worlds = []
    for number, ring in enumerate(rings):
        shared = make_shared(f"n{number}")
        await shared.open()
        shared._vault.connect(ring)
        worlds.append(World(shared))
    here, there = worlds
    with pytest.raises(StateError):
        here.copy.carried.seal("before the snapshot")
    here.wire.link()
    there.wire.link()
    first = here.copy.carried.seal("a thought")
    assert b"thought" not in first
    everybody = [here.copy.carried, there.copy.carried, here.shared.carried, there.shared.carried]
    assert [each.open_secret(first) for each in everybody] == ["a thought"] * 4
    for ring in rings:
        ring.install(keys[1].secret)
    for ring in rings:
        ring.use(keys[1].fingerprint)
    for world in worlds:
        world.publishing._tell_changes()
    second = there.copy.carried.seal("another")
    assert [each.open_secret(second) for each in everybody] == ["another"] * 4
    assert [each.open_secret(first) for each in everybody] == ["a thought"] * 4
    for ring in rings:
        ring.remove(keys[0].fingerprint)
    for world in worlds:
        world.publishing._tell_changes()
    assert [each.open_secret(first) for each in everybody] == [None] * 4
    assert [each.open_secret(second) for each in everybody] == ["another"] * 4
    assert here.wire.begun_anew == there.wire.begun_anew == 0
    for world in worlds:
        await world.shared.close()
