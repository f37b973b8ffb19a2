"""Clients behind a balancer: nobody is sent what it cannot take, and a busy generator is told from a busy cluster."""

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.clients import load as load_module
from smg_chaos.gameday.clients.load import Balancer, Load, Tally
from smg_chaos.gameday.lab.http_client import Talk
from support.mesh.gameday_fakes import FakeLab, Manners, VirtualClock, on_virtual_time

NAMES = ("n0", "n1", "n2")
QUESTIONS = ("one?", "two?")
EXPECTED = ("one!", "two!")


class FakeTalk(Talk):
    """A connection to nobody. `answer_s` is how long each takes."""

    def __init__(self, node: "FakeNode") -> None:
        self.node = node
        self.closed = False

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        timeout_s: float = 2.0,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes]:
        self.node.open += 1
        try:
            await asyncio.sleep(self.node.answer_s)
        finally:
            self.node.open -= 1
        self.node.asked += 1
        return self.node.says(json.loads(body)["messages"][0]["content"])

    def close(self) -> None:
        self.closed = True


class FakeNode(SmgAgent):
    """A node that answers what `says` says."""

    def __init__(self, lab: FakeLab, name: str, folder: Path) -> None:
        super().__init__(lab, name, folder, lab.clock, key=None)
        self.answer_s = 0.01
        self.asked = 0
        self.open = 0
        self.talks: list[FakeTalk] = []
        self.says: Callable[[str], tuple[int, bytes]] = right

    def client(self) -> Talk:
        self.talks.append(FakeTalk(self))
        return self.talks[-1]


def right(question: str) -> tuple[int, bytes]:
    text = dict(zip(QUESTIONS, EXPECTED, strict=True))[question]
    return 200, json.dumps({"choices": [{"message": {"content": text}}]}).encode()


def wrong(question: str) -> tuple[int, bytes]:
    return 200, json.dumps({"choices": [{"message": {"content": "what?"}}]}).encode()


@pytest.fixture
def lab() -> FakeLab:
    return FakeLab(NAMES, VirtualClock(), Manners())


@pytest.fixture
def nodes(lab: FakeLab, tmp_path: Path) -> list[FakeNode]:
    return [FakeNode(lab, name, tmp_path / name) for name in NAMES]


def asked_for(lab: FakeLab, nodes: list[FakeNode], seconds: float, *, per_s: float = 100.0) -> Load:
    made: list[Load] = []

    async def run() -> None:
        made.append(
            Load(
                Balancer(nodes),
                per_s,
                QUESTIONS,
                EXPECTED,
                tokens=2,
                now_s=lab.clock.monotonic_s,
            )
        )
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(made[0].run())
            await asyncio.sleep(seconds)
            asking.cancel()

    on_virtual_time(lab.clock, run)
    return made[0]


def test_so_many_are_asked_in_a_second_each_in_its_turn_and_connections_are_kept(
    lab: FakeLab, nodes: list[FakeNode]
) -> None:
    tally = asked_for(lab, nodes, 10.0).tally
    assert tally.answers == pytest.approx(1000, abs=2)
    assert (tally.wrong, tally.unsent) == (0, 0)
    assert max(node.asked for node in nodes) - min(node.asked for node in nodes) <= 1
    assert all(len(node.talks) <= 2 for node in nodes)
    assert all(talk.closed for node in nodes for talk in node.talks)


def test_a_slow_cluster_is_asked_as_often_as_a_fast_one(
    lab: FakeLab, nodes: list[FakeNode]
) -> None:
    for node in nodes:
        node.answer_s = 1.5
    tally = asked_for(lab, nodes, 10.0).tally
    assert tally.answers == pytest.approx(850, abs=5)
    assert max(tally.late_s) < 0.001
    assert min(tally.took_s) == pytest.approx(1.5)


def test_one_that_never_answers_is_not_asked_without_end(
    lab: FakeLab, nodes: list[FakeNode]
) -> None:
    for node in nodes:
        node.answer_s = 1000.0
    tally = asked_for(lab, nodes, 10.0).tally
    assert tally.unsent == pytest.approx(1000 - load_module.OPEN_MAX, abs=2)
    assert tally.answers == 0


def test_answers_that_are_wrong_refused_or_missing_are_counted_and_shown(
    lab: FakeLab, nodes: list[FakeNode]
) -> None:
    def missing(question: str) -> tuple[int, bytes]:
        raise ConnectionError("reset")

    nodes[0].says = wrong
    nodes[1].says = lambda question: (503, b"no worker")
    nodes[2].says = missing
    tally = asked_for(lab, nodes, 3.0).tally
    assert tally.wrong == tally.answers == pytest.approx(300, abs=2)
    assert len(tally.shown) == 100
    shown = "\n".join(tally.shown[:3])
    assert "200 what?" in shown
    assert "503 no worker" in shown
    assert "0 reset" in shown


async def test_who_is_taken_out_finishes_and_gets_nothing_until_it_is_back(
    nodes: list[FakeNode],
) -> None:
    balancer = Balancer(nodes)
    balancer.count(nodes[0], 1)
    async with asyncio.TaskGroup() as group:
        leaving = group.create_task(balancer.take_out(nodes[0]))
        await asyncio.sleep(0)
        assert {balancer.next().name for _ in range(6)} == {"n1", "n2"}
        assert not leaving.done()
        balancer.count(nodes[0], 1)
        balancer.count(nodes[0], -1)
        await asyncio.sleep(0)
        assert not leaving.done()
        balancer.count(nodes[0], -1)
    assert [node.name for node in balancer.nodes()] == ["n1", "n2"]
    balancer.take_back(nodes[0])
    assert {balancer.next().name for _ in range(6)} == set(NAMES)


def figures(tally: Tally, *, used_s: float = 1.0) -> Mapping[str, tuple[float | None, bool]]:
    found = tally.figures(10.0, 10.0, used_s)
    return {figure.metric: (figure.value, figure.is_met) for figure in found}


def test_figures_tell_a_generator_that_was_the_bottleneck_from_a_cluster_that_was() -> None:
    tally = Tally()
    for number in range(100):
        tally.late_s.append(0.001)
        tally.went("n0", 0.02 if number < 99 else 0.5, (200, "yes"), "yes")
    well = figures(tally)
    assert all(met for _, met in well.values())
    assert well["wrong or failed answers"] == (0, True)
    assert well["requests/s less than wanted"] == (0.0, True)
    assert figures(tally, used_s=7.0)["load generator: CPU of a core"] == (70.0, False)
    tally.went("n1", 0.02, (200, "no"), "yes")
    assert figures(tally)["wrong or failed answers"] == (1, False)
    few = Tally(late_s=[0.0], took_s=[0.1] * 90)
    assert figures(few)["requests/s less than wanted"] == (1.0, False)
