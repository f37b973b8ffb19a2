"""One account of a vendor behind three real nodes: what one is told of it counts at all, and hardly a call is refused."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.clients.many_clients import clients
from support.processes.mesh_nodes import MeshNode
from support.processes.mesh_trio import Trio, running_trio
from support.processes.node_api import call
from support.providers.stand_ins import KEY, StandIn, running_stand_ins

pytestmark = pytest.mark.integration

PROVIDERS = "/v1/cluster/providers"
MODEL = "gpt-4.1-mini"
ASKED = {"model": MODEL, "messages": [{"role": "user", "content": "words=2"}]}
PER_MINUTE = 600
LOAD_S = 12.0


@dataclass
class World:
    trio: Trio
    vendor: StandIn

    def limit(self, filled: float) -> None:
        """Give the account new buckets, filled to that part."""
        limits = {"requests_per_minute": PER_MINUTE, "filled": filled}
        self.vendor.admin("/limits", limits, "PUT")

    def shown(self, node: MeshNode) -> Any:
        return node.get(f"{PROVIDERS}/oai")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder: Path = tmp_path_factory.mktemp("rates")
    for name in ("vendor", "nodes"):
        (folder / name).mkdir()
    flags = ("--kind", "openai", "--port", "0", "--model", "*", "--rpm", str(PER_MINUTE))
    with (
        running_stand_ins(folder / "vendor", *flags) as ((vendor,), _),
        running_trio(folder / "nodes", "--processes", "2") as trio,
    ):
        world = World(trio, vendor)
        body = {"kind": "openai", "base": vendor.base, "keys": [KEY], "models": [MODEL]}
        made = call(trio["a"], "PUT", f"{PROVIDERS}/oai", body, {"if-match": "*"})
        assert made.status == 200, made
        trio.on_all(
            lambda node: all(one["state"] == "ready" for one in world.shown(node)["targets"]),
            "served",
        )
        yield world
        assert KEY not in trio.logs()


def test_three_nodes_spend_one_account_and_one_call_in_a_hundred_is_refused_at_most(
    world: World,
) -> None:
    world.limit(0.1)
    with clients(world.trio, 2, MODEL) as offered:
        began_s = time.monotonic()
        time.sleep(LOAD_S)
        told = world.vendor.admin("/limits")
        took_s = time.monotonic() - began_s
    answers = [answer for one in offered for answer in one.answers]
    reached = told["let_in"] + told["refused"]
    assert told["refused"] <= 0.01 * reached, told
    # Most of what there was is spent: a tenth of the bucket, and what came back; a little stays in it.
    there = PER_MINUTE * (0.1 - 0.02) + PER_MINUTE / 60 * took_s
    assert told["let_in"] >= 0.7 * there, told
    assert {answer.status for answer in answers} == {200, 429}
    for node in world.trio.living:
        served = [one for one in offered if one.node is node]
        assert sum(answer.status == 200 for one in served for answer in one.answers) > 10
    for answer in answers:
        if answer.status == 429:
            assert answer.error["code"] in ("upstream_rate_limited", "rate_limit_exceeded")
            assert 0 < int(answer.headers["retry-after-ms"]) <= 10_000
            assert KEY not in str(answer)


def test_every_node_shows_what_one_was_told(world: World) -> None:
    world.limit(0.5)
    b = world.trio["b"]
    # The account was empty when the nodes were told of it last, and fills by what they know.
    b.awaits("let in", lambda: call(b, "POST", "/v1/chat/completions", ASKED).status == 200)

    def knows(node: MeshNode) -> bool:
        limits = world.shown(node)["limits"]
        return bool(limits) and 250 < limits[0]["left"] < 350

    world.trio.on_all(knows, "knowing the limit")
    shown = world.trio["c"].admin("providers", "show", "oai")
    assert shown.code == 0, shown
    assert "requests" in shown.out
    assert str(PER_MINUTE) in shown.out


def test_a_key_that_is_refused_at_one_node_rests_at_all(world: World) -> None:
    world.limit(1.0)
    world.vendor.admin("/keys", {"remove": [KEY]})
    try:
        refused = call(world.trio["a"], "POST", "/v1/chat/completions", ASKED)
        assert (refused.status, refused.error["code"]) == (502, "upstream_denied")
        world.trio.on_all(
            lambda node: world.shown(node)["targets"][0]["code"] == "upstream_denied", "resting"
        )
        reached = len(world.vendor.admin("/requests?last=100000"))
        for node in world.trio.living:
            answer = call(node, "POST", "/v1/chat/completions", ASKED)
            assert (answer.status, answer.error["code"]) == (502, "upstream_denied")
        assert len(world.vendor.admin("/requests?last=100000")) == reached
    finally:
        world.vendor.admin("/keys", {"add": [KEY]})
