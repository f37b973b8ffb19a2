"""An operator sets a limit through any node, and waits until all of them go by it."""

import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from smg_chaos.gameday.agents.agent import AgentError
from smg_chaos.gameday.agents.cluster import Cluster, ClusterError
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.limits.clients.client_messages import TALK, Asks
from smg_chaos.gameday.limits.definition import Definer, Rule
from smg_chaos.gameday.limits.scene import PLACES, Scene, evenly, mostly
from smg_chaos.gameday.stage import Stage
from support.mesh.gameday_fakes import FakeLab, Manners, VirtualClock, on_virtual_time

NAMES = ("n0", "n1", "n2")
PATH = "/v1/cluster/limits/model=sim"
ASKS = Asks()
RULE = Rule(requests="40/second")


def held(
    name: str, window: int, spent: int, key: str = "model=sim#tokens/1000", owed: int = 0
) -> dict[str, Any]:
    said = {"kind": "held", "name": name, "window": window, "key": key}
    return {**said, "spent": spent, "owed": owed}


ROWS = {
    "n0": [
        held("n0", 6, 100),
        held("n0", 7, 8, owed=5),
        held("n0", 8, 4),
        {**held("n0", 8, 0), "kind": "minting"},
    ],
    "n1": [held("n1", 7, 9), held("n1", 7, 50, "model=sim#requests/1000"), held("n2", 7, 70)],
    "n2": [],
}


class Node(SmgAgent):
    """A node with a limit that all go by after it was asked `late` times."""

    def __init__(self, lab: FakeLab, name: str, folder: Path) -> None:
        super().__init__(lab, name, folder, lab.clock, key=None)
        self.silent = False
        self.gone = False
        self.status = 200
        self.late = 2
        self.version = 3
        self.asked: list[tuple[str, str, Any, Mapping[str, str]]] = []

    def ended(self) -> int | None:
        return -9 if self.gone else None

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        timeout_s: float = 10.0,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes]:
        if self.silent:
            raise ConnectionError("nobody listens")
        self.asked.append((method, path, json.loads(body or b"null"), dict(headers or {})))
        if method == "PUT":
            self.version = 4
            return self.status, json.dumps({"version": 4}).encode()
        self.late -= 1
        use = {
            "owner": "n1" if self.late < 1 else "",
            "not_adopted": ["n2"] if self.late == 0 else [],
        }
        said = {"limit": {"version": self.version}, "uses": [use], "rows": ROWS}
        return self.status, json.dumps(said).encode()


class QuietScene(Scene):
    """A scene in which nothing runs; it remembers what was asked for."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.rates: list[tuple[dict[str, float], Asks]] = []

    async def rate(self, per_s: Mapping[str, float], asks: Asks | None = None) -> None:
        assert asks is not None
        self.rates.append((dict(per_s), asks))

    async def quiet(self) -> None:
        self.rates.append(({}, ASKS))


@pytest.fixture
def nodes(tmp_path: Path) -> list[Node]:
    lab = FakeLab((*NAMES, *PLACES), VirtualClock(), Manners())
    return [Node(lab, name, tmp_path / name) for name in NAMES]


@pytest.fixture
def scene(nodes: list[Node]) -> QuietScene:
    lab = nodes[0]._lab
    assert isinstance(lab, FakeLab)
    cluster = Cluster(lab, nodes, lab.clock)
    return QuietScene(Stage(cluster, 1.0, 0, Random(1), lambda line: None))


def run(scene: Scene, wait: Callable[[], Awaitable[Any]]) -> Any:
    lab = scene.cluster.lab
    assert isinstance(lab, FakeLab)
    return on_virtual_time(lab.clock, wait)


def test_a_rule_is_written_as_the_api_takes_it() -> None:
    rule = Rule(TALK, "40/second", "900/20s", 8, "balanced", 0.25, "finish")
    assert json.loads(rule.body()) == {
        "amounts": [
            {"unit": "requests", "amount": 40, "window": "second"},
            {"unit": "tokens", "amount": 900, "window": "20s"},
        ],
        "concurrency": 8,
        "mode": "balanced",
        "standing": 0.25,
        "on_exhausted": "finish",
    }
    assert "concurrency" not in json.loads(RULE.body())


def test_it_waits_for_an_owner_and_until_everybody_goes_by_the_limit(
    scene: QuietScene, nodes: list[Node]
) -> None:
    nodes[0].gone = True
    nodes[1].version = nodes[2].version = 4
    began_us = scene.now_us()
    known_us = run(scene, lambda: Definer(scene).put(RULE))
    assert nodes[1].asked[0] == ("PUT", PATH, json.loads(RULE.body()), {"if-match": "*"})
    assert [method for method, *_ in nodes[1].asked] == ["PUT", "GET", "GET", "GET", "GET"]
    assert began_us < known_us <= began_us + 1_000_000


def test_an_owner_that_has_not_heard_of_the_limit_proves_nothing(
    scene: QuietScene, nodes: list[Node]
) -> None:
    for node in nodes:
        node.late = 0
    with pytest.raises(ClusterError, match="not all nodes go by the limit"):
        run(scene, lambda: Definer(scene).put(RULE))
    assert nodes[2].asked == []  # the first that has not heard of it is enough


def test_a_limit_that_nobody_asks_of_is_asked_of_while_it_is_set(
    scene: QuietScene, nodes: list[Node]
) -> None:
    for node in nodes:
        node.version = 4
    run(scene, lambda: Definer(scene).begin(RULE))
    assert scene.rates == [
        (dict.fromkeys(NAMES, 2.0), Asks("sim")),
        ({}, ASKS),
    ]
    assert nodes[0].asked[-1][0] == "GET"


def test_the_owner_and_what_was_spent_are_told_by_who_is_there(
    scene: QuietScene, nodes: list[Node]
) -> None:
    nodes[0].gone = True
    definer = Definer(scene)
    assert run(scene, definer.owner) == "n1"
    assert nodes[0].asked == []
    books = run(scene, lambda: definer.books("sim", "tokens"))
    assert books == {("n0", 6): 100, ("n0", 7): 3, ("n0", 8): 4, ("n1", 7): 9}
    assert nodes[1].asked[-1][1] == f"{PATH}?rows=true"


def test_what_never_comes_about_is_an_error(scene: QuietScene, nodes: list[Node]) -> None:
    definer = Definer(scene)
    nodes[0].late = 10_000
    with pytest.raises(ClusterError, match="not all nodes go by the limit"):
        run(scene, lambda: definer.put(RULE))
    with pytest.raises(ClusterError, match="nobody owns"):
        run(scene, definer.owner)
    nodes[0].status = 400
    with pytest.raises(AgentError, match="no node sets the limit"):
        run(scene, lambda: definer.put(RULE))
    for node in nodes:
        node.silent = True
    with pytest.raises(ClusterError, match="no node answers: nobody listens"):
        run(scene, lambda: definer.put(RULE))


def test_rates_are_shared_evenly_or_mostly() -> None:
    assert evenly(["a", "b"], 10) == {"a": 5, "b": 5}
    rates = mostly(["a", "b", "c"], "b", 100)
    assert rates["b"] == 95
    assert rates["a"] == rates["c"] == pytest.approx(2.5)
    assert sum(rates.values()) == pytest.approx(100)
