"""Prompt caches over three real nodes and three accounts: conversations go where their prompts are cached."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.processes.mesh_nodes import MeshNode, until
from support.processes.mesh_trio import Trio, running_trio
from support.processes.node_api import Answer, call
from support.providers.cached_conversations import chat_body, messages_body, read_alone
from support.providers.stand_ins import StandIn, running_stand_ins

pytestmark = pytest.mark.integration

MODEL = "claude-sonnet-5"
TALKS, TURNS = 18, 5
KEY = "sk-vendor"


@dataclass
class World:
    """Three nodes, and three accounts that a route chooses among by their caches."""

    trio: Trio
    vendors: Sequence[StandIn]

    def reset(self) -> None:
        for vendor in self.vendors:
            vendor.admin("/reset", {})

    def bill(self, what: str) -> int:
        rows = [row for vendor in self.vendors for row in vendor.admin("/bill")["rows"]]
        return sum(row[what] for row in rows)

    def known(self) -> None:
        """Return when all nodes know as much of the caches."""

        def same() -> bool:
            return len({rows_of(node) for node in self.trio.living}) == 1

        until(same, "the same rows of caches at all nodes")

    def turn(self, path: str, bodies: Sequence[dict[str, Any]], shift: int) -> None:
        """Send a turn of every conversation, each to another node than the turn before."""
        nodes = self.trio.living
        for at, body in enumerate(bodies):
            answer = call(nodes[(at + shift) % len(nodes)], "POST", path, body)
            assert answer.status == 200, answer
        self.known()


def rows_of(node: MeshNode) -> int:
    kinds = node.get("/v1/cluster/state")["namespaces"]
    return next(kind["entries"] for kind in kinds if kind["name"] == "prompt_caches")


def put(node: MeshNode, path: str, body: Any) -> Answer:
    answer = call(node, "PUT", path, body, {"if-match": "*"})
    assert answer.status == 200, answer
    return answer


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("caches")
    (folder / "vendors").mkdir()
    kinds = ("--kind", "anthropic") * 3
    with (
        running_stand_ins(folder / "vendors", *kinds, "--port", "0", "--model", "*") as (
            vendors,
            _,
        ),
        running_trio(folder) as trio,
    ):
        targets = []
        for at, vendor in enumerate(vendors):
            spec = {"kind": "anthropic", "base": vendor.base, "keys": [KEY]}
            put(trio["a"], f"/v1/cluster/providers/account-{at}", spec)
            targets.append(f"account-{at}/{MODEL}")
        put(trio["a"], "/v1/cluster/routes/claude", {"targets": targets, "choose": "affinity"})
        trio.on_all(ready, "the route")
        yield World(trio, vendors)


def ready(node: MeshNode) -> bool:
    answer = call(node, "GET", "/v1/cluster/routes/claude")
    return answer.status == 200 and all(
        target["state"] == "ready" for target in answer.body["targets"]
    )


def test_conversations_that_move_between_nodes_read_what_one_account_alone_would(
    world: World,
) -> None:
    world.reset()
    rounds = [
        [messages_body("claude", talk, turn) for talk in range(TALKS)] for turn in range(TURNS)
    ]
    for turn, bodies in enumerate(rounds):
        world.turn("/v1/messages", bodies, turn)
    alone = read_alone("anthropic", "/v1/messages", [body for bodies in rounds for body in bodies])
    read = world.bill("cached_tokens")
    assert alone > 100_000
    assert read >= 0.95 * alone
    used = [len(vendor.admin("/bill")["rows"]) for vendor in world.vendors]
    assert used == [1, 1, 1]
