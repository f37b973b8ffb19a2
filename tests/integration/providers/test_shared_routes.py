"""Routes on three real nodes: one key goes to one target on all of them, shares are the weights, splits agree."""

import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from smg_node.fleet.load.worker_load import WorkerLoad
from smg_node.providers.routes.split_rule import SplitRule
from smg_node.routing.policies.weighted import Weighted
from smg_node.routing.policy import Asked, PolicyParts
from smg_node.routing.policy_registry import OwnBindings
from smg_node.routing.pool import Pool
from support.processes.mesh_nodes import MeshNode
from support.processes.mesh_trio import Trio, running_trio
from support.processes.node_api import ROUTED, call, chat
from support.providers.stand_ins import running_stand_ins

pytestmark = pytest.mark.integration

PROVIDERS = "/v1/cluster/providers"
ROUTE = "/v1/cluster/routes/shared"
KEY = "sk-vendor"
WEIGHTS = {"one": 3.0, "two": 1.0}
KEYS = 10_000
ASKED = 120
"""Keys that real nodes are asked for, each of the three."""


@pytest.fixture(scope="module")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    """Three nodes, and two accounts at one vendor."""
    folder = tmp_path_factory.mktemp("routes")
    (folder / "vendor").mkdir()
    flags = ("--kind", "openai", "--port", "0", "--key", KEY, "--model", "*")
    with (
        running_stand_ins(folder / "vendor", *flags) as ((vendor,), _),
        running_trio(folder) as trio,
    ):
        for name in WEIGHTS:
            body = {"kind": "openai", "base": vendor.base, "keys": [KEY]}
            made = call(trio["a"], "PUT", f"{PROVIDERS}/{name}", body, {"if-match": "*"})
            assert made.status == 200, made
        yield trio


def define(trio: Trio, **ways: Any) -> dict[str, str]:
    """Define the route on one node; return the workers of its targets once all nodes have them."""
    targets = [{"to": f"{name}/gpt-4o", "weight": weight} for name, weight in WEIGHTS.items()]
    body = {"targets": targets, **ways}
    made = call(trio["b"], "PUT", ROUTE, body, {"if-match": "*"})
    assert made.status == 200, made
    version = made.body["version"]

    def ready(node: MeshNode) -> bool:
        found = call(node, "GET", ROUTE)
        return (
            found.status == 200
            and found.body["version"] == version
            and all(one["state"] == "ready" for one in found.body["targets"])
        )

    trio.on_all(ready, "serving the route")
    return {one["to"].partition("/")[0]: one["worker"] for one in made.body["targets"]}


def placed(workers: dict[str, str], keys: list[str]) -> list[str]:
    """Where the pure rule places keys."""
    loads = [WorkerLoad(workers[name], weight=weight) for name, weight in WEIGHTS.items()]
    pool = Pool(sorted(loads, key=lambda one: one.worker))
    policy, rng = Weighted(PolicyParts(OwnBindings())), random.Random(0)
    return [pool.workers[policy.choose(Asked("shared", key=key), pool, rng)] for key in keys]


def on_each(trio: Trio, ask: Any, whom: list[str]) -> dict[str, list[str]]:
    """Return by node which worker answered for each of these."""
    with ThreadPoolExecutor(4) as several:
        return {
            node.node.url: list(several.map(lambda one, node=node: ask(node, one), whom))
            for node in trio.living
        }


def by_key(node: MeshNode, key: str) -> str:
    answer = chat(node, "shared", key=key)
    assert answer.status == 200, answer
    return str(answer.headers[ROUTED])


def by_user(node: MeshNode, user: str) -> str:
    body = {"model": "shared", "messages": [{"role": "user", "content": "hi"}], "user": user}
    answer = call(node, "POST", "/v1/chat/completions", body)
    assert answer.status == 200, answer
    return str(answer.headers[ROUTED])


def test_three_nodes_share_keys_out_by_the_weights(trio: Trio) -> None:
    workers = define(trio)
    keys = [f"user-{at}" for at in range(KEYS)]
    pure = placed(workers, keys)
    counted = Counter(pure)
    for name, weight in WEIGHTS.items():
        assert abs(counted[workers[name]] / KEYS - weight / 4) <= 0.01
    for answered in on_each(trio, by_key, keys[:ASKED]).values():
        assert answered == pure[:ASKED]


def test_conversations_of_one_caller_without_keys_are_shared_out_and_stay(trio: Trio) -> None:
    workers = define(trio)
    first: list[Any] = [{"role": "user", "content": f"question {at}"} for at in range(60)]

    def ask(node: MeshNode, turns: list[Any]) -> str:
        answer = call(node, "POST", "/v1/chat/completions", {"model": "shared", "messages": turns})
        assert answer.status == 200, answer
        return str(answer.headers[ROUTED])

    begun = [ask(trio["a"], [one]) for one in first]
    more = [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": "and then?"}]
    later = [ask(trio["b"], [one, *more]) for one in first]
    assert later == begun
    assert Counter(begun).keys() == set(workers.values())


def test_a_split_is_the_same_on_all_nodes_and_after_a_restart(trio: Trio) -> None:
    split = {"to": "two", "share": 0.3, "key": "user", "name": "trial"}
    workers = define(trio, split=split)
    users = [f"u{at}" for at in range(60)]
    rule = SplitRule("trial", 0.3, "user")
    expected = [
        workers["two" if rule.side("shared", f"user {user}", 0) == "in" else "one"]
        for user in users
    ]
    assert set(expected) == set(workers.values())
    for answered in on_each(trio, by_user, users).values():
        assert answered == expected
    trio.kill("c")
    trio.start("c")
    trio.all_agree()
    define(trio, split=split)
    assert [by_user(trio["c"], user) for user in users] == expected


def test_explain_tells_what_kept_a_request_where_it_is_and_its_side(trio: Trio) -> None:
    define(trio, split={"to": "two", "share": 1.0, "name": "all"})
    answer = chat(trio["a"], "shared", key="k")
    assert answer.status == 200, answer
    told = trio["a"].admin("explain", answer.headers["x-request-id"])
    assert told.code == 0, told
    assert "split all: in, by conversation" in told.out
    assert "kept together by routing key" in told.out
    assert "(not of split all)" in told.out
