"""Rows of vendors' limits go between the processes of a node, and between them and other nodes, and none comes back."""

from collections.abc import Callable
from typing import cast

import pytest

from smg_mesh.shared import SharedBucket, SharedPause, VendorRates
from smg_node.processes.ipc.control_bus import Bus
from smg_node.processes.ipc.data_uplink import Uplink
from smg_node.processes.replication.copied_rates import CopiedRates
from smg_node.processes.replication.rate_relay import RateRelay
from support.state.register_world import RegisterWorld

A, B = "0011223344556677/requests", "0011223344556677/!closed"
NOW_MS = 1_790_000_000_000


class Node:
    """A node with a bus and data processes that are linked to it; messages are taken at once, and counted."""

    def __init__(self, world: RegisterWorld, name: str) -> None:
        self.takers: dict[str, Callable[[str, bytes], None]] = {}
        self.opens: list[Callable[[str], None]] = []
        self.deaths: list[Callable[[str], None]] = []
        self.links: dict[str, Process] = {}
        self.told = 0
        self.rates = VendorRates(world[name].bound, name, wall_ms=lambda: NOW_MS + world.now_ms())
        self.relay = RateRelay(self.rates, cast("Bus", self))

    @property
    def processes(self) -> list[str]:
        return list(self.links)

    def on(self, name: str, taker: Callable[[str, bytes], None]) -> None:
        self.takers[name] = taker

    def opened(self, heard: Callable[[str], None]) -> None:
        self.opens.append(heard)

    def died(self, heard: Callable[[str], None]) -> None:
        self.deaths.append(heard)

    def tell(self, process: str, name: str, payload: bytes) -> None:
        self.told += 1
        self.links[process].takers[name](payload)

    def link(self, process: "Process") -> None:
        self.links[process.process] = process
        for heard in self.opens:
            heard(process.process)

    def end(self, process: "Process") -> None:
        del self.links[process.process]
        for heard in self.deaths:
            heard(process.process)


class Process:
    """A data process, linked."""

    def __init__(self, node: Node, name: str) -> None:
        self.process = name
        self.node = node
        self.takers: dict[str, Callable[[bytes], None]] = {}
        self.begins: list[Callable[[], None]] = []
        self.rates = CopiedRates(cast("Uplink", self))
        self.heard: list[str] = []
        self.rates.watch(self.heard.extend)
        self.link()

    def link(self) -> None:
        for begin in self.begins:
            begin()
        self.node.link(self)

    def on(self, name: str, taker: Callable[[bytes], None]) -> None:
        self.takers[name] = taker

    def opened(self, heard: Callable[[], None]) -> None:
        self.begins.append(heard)

    def tell(self, name: str, payload: bytes) -> None:
        self.node.takers[name](self.process, payload)


@pytest.fixture
def world() -> RegisterWorld:
    return RegisterWorld("a", "b")


def bucket(wanted: int, left: int, age_ms: int = 0) -> SharedBucket:
    now_ms = NOW_MS + 1_000_000 - age_ms
    return SharedBucket(wanted, 600, left, now_ms + 60_000, now_ms)


def test_processes_and_nodes_hear_each_other_and_not_themselves(world: RegisterWorld) -> None:
    a, b = Node(world, "a"), Node(world, "b")
    first, second, third = Process(a, "1"), Process(a, "2"), Process(b, "1")
    first.rates.publish({A: bucket(5, 40, 20)})
    second.rates.publish({A: bucket(7, 30)})
    assert first.rates.others() == {A: bucket(7, 30)}
    assert second.rates.others() == {A: bucket(5, 40, 20)}
    world.pass_time(300, step_ms=50)
    a.rates.refresh()
    assert third.rates.others() == b.relay.others() == {A: bucket(12, 30)}
    assert a.relay.others() == {A: bucket(12, 30)}
    assert first.heard == [A]


def test_the_control_process_takes_part_itself(world: RegisterWorld) -> None:
    a, b = Node(world, "a"), Node(world, "b")
    first = Process(a, "1")
    heard: list[str] = []
    a.relay.watch(heard.extend)
    a.relay.publish({A: bucket(1, 9)})
    assert first.rates.others() == {A: bucket(1, 9)}
    assert b.relay.others() == {A: bucket(1, 9)}
    assert heard == []
    first.rates.publish({B: SharedPause(NOW_MS + 1_060_000)})
    assert heard == [B]
    assert a.relay.others() == {B: SharedPause(NOW_MS + 1_060_000)}


def test_what_a_process_said_ends_with_it(world: RegisterWorld) -> None:
    a, b = Node(world, "a"), Node(world, "b")
    first, second = Process(a, "1"), Process(a, "2")
    first.rates.publish({A: bucket(5, 40), B: SharedPause(NOW_MS + 1_060_000)})
    a.end(first)
    assert second.rates.others() == {}
    world.pass_time(300, step_ms=50)
    a.rates.refresh()
    assert b.relay.others() == {}


def test_a_process_that_comes_later_is_told_everything_and_one_that_links_anew(
    world: RegisterWorld,
) -> None:
    a = Node(world, "a")
    first = Process(a, "1")
    first.rates.publish({A: bucket(5, 40)})
    second = Process(a, "2")
    assert second.rates.others() == {A: bucket(5, 40)}
    second.rates.publish({B: SharedPause(NOW_MS + 1_060_000)})
    # Another control process, which knows nothing, and one process is gone meanwhile.
    other = Node(RegisterWorld("a"), "a")
    second.node = other
    second.link()
    assert second.rates.others() == {}
    assert other.relay.others() == {B: SharedPause(NOW_MS + 1_060_000)}


def test_where_nothing_is_known_nothing_is_sent(world: RegisterWorld) -> None:
    a = Node(world, "a")
    first, second = Process(a, "1"), Process(a, "2")
    assert (a.told, world["a"].said) == (0, [])
    first.rates.publish({A: bucket(5, 40)})
    first.rates.publish({A: bucket(5, 40)})
    assert a.told == 1
    assert second.heard == [A]
