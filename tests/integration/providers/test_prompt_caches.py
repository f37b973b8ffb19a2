"""Prompt caches over three real nodes and three accounts: conversations go where their prompts are cached."""

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.processes.mesh_nodes import MeshNode, until
from support.processes.mesh_trio import Trio, running_trio
from support.processes.node import running_node
from support.processes.node_api import Answer, call
from support.providers.caches.cached_conversations import chat_body, messages_body, read_alone
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
        """Let all accounts forget bills and caches."""
        for vendor in self.vendors:
            vendor.admin("/reset", {})

    def expected(self) -> float:
        """Return how many tokens the nodes expected accounts to read, since their start."""
        name = "smg_node_provider_cache_expected_tokens_total"
        return sum(
            node.node.metric(name, provider=f"account-{at}")
            for node in self.trio.living
            for at in range(len(self.vendors))
        )

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
        assert rows_of(nodes[0]) > 0


def rows_of(node: MeshNode) -> int:
    kinds = node.get("/v1/cluster/state")["namespaces"]
    return sum(int(kind["entries"]) for kind in kinds if kind["name"] == "prompt_caches")


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


def ready(node: MeshNode, route: str = "claude") -> bool:
    answer = call(node, "GET", f"/v1/cluster/routes/{route}")
    return answer.status == 200 and all(
        target["state"] == "ready" for target in answer.body["targets"]
    )


@pytest.mark.parametrize(
    ("talks", "turns"), [(TALKS, TURNS), pytest.param(200, 10, marks=pytest.mark.long)]
)
def test_conversations_that_move_between_nodes_read_what_one_account_alone_would(
    world: World, talks: int, turns: int
) -> None:
    world.reset()
    before = world.expected()
    rounds = [
        [messages_body("claude", talk, turn) for talk in range(talks)] for turn in range(turns)
    ]
    for turn, bodies in enumerate(rounds):
        world.turn("/v1/messages", bodies, turn)
    alone = read_alone("anthropic", "/v1/messages", [body for bodies in rounds for body in bodies])
    read = world.bill("cached_tokens")
    assert alone > 100_000
    assert read >= 0.95 * alone
    # They were not lucky: it was known where to go, also by nodes that had not asked before.
    assert world.expected() - before >= 0.9 * read
    assert [bool(vendor.admin("/bill")["rows"]) for vendor in world.vendors] == [True] * 3


def test_a_node_that_was_killed_and_comes_back_without_its_disk_knows_where_prompts_are(
    world: World,
) -> None:
    world.reset()
    first = [messages_body("claude", talk, 0, system=7_000) for talk in range(TALKS)]
    # Rows are written a little after answers, several at once: all nodes may know as many, and some be still to come.
    nodes = world.trio.living
    everything = rows_of(nodes[0]) + TALKS
    world.turn("/v1/messages", first, 0)
    until(lambda: all(rows_of(node) >= everything for node in nodes), "all rows at all nodes")
    world.trio.kill("b")
    world.trio.lose_disk("b")
    again = world.trio.start("b")
    world.trio.on_all(ready, "the route")
    world.known()
    for talk in range(TALKS):
        body = messages_body("claude", talk, 1, system=7_000)
        assert call(again, "POST", "/v1/messages", body).status == 200
    read, written = world.bill("cached_tokens"), world.bill("written_tokens")
    assert read >= 0.95 * sum(len(str(body)) for body in first) / 4
    expected = sum(
        again.node.metric("smg_node_provider_cache_expected_tokens_total", provider=f"account-{at}")
        for at in range(3)
    )
    assert expected >= 0.9 * read
    assert written < 1.5 * read


def test_a_chat_is_marked_for_claude_once_it_goes_on_and_explain_says_what_was_saved(
    world: World,
) -> None:
    world.reset()
    for turn in range(3):
        world.turn("/v1/chat/completions", [chat_body("claude", 900, turn, system=9_000)], turn)
    asked = [
        json.loads(base64.b64decode(row["body"]))
        for vendor in world.vendors
        for row in vendor.admin("/requests?last=3")
    ]
    marks = [body.get("cache_control") for body in sorted(asked, key=lambda body: len(str(body)))]
    assert marks == [None, {"type": "ephemeral"}, {"type": "ephemeral"}]
    assert world.bill("cached_tokens") > 2_000
    answer = call(
        world.trio["a"], "POST", "/v1/chat/completions", chat_body("claude", 900, 3, system=9_000)
    )
    told = world.trio["a"].admin("explain", answer.headers["x-request-id"], "--json")
    assert told.code == 0, told
    rated = {
        row["worker"]: row["overlap"]
        for step in json.loads(told.out)["journeys"][0]["steps"]
        for row in step.get("rated", ())
    }
    assert len(rated) == 3
    assert sorted(overlap > 2_000 for overlap in rated.values()) == [False, False, True]


def test_processes_of_one_node_know_what_each_other_sent(tmp_path: Path, world: World) -> None:
    world.reset()
    accounts = {
        f"account-{at}": {"kind": "anthropic", "base": vendor.base, "keys": [KEY]}
        for at, vendor in enumerate(world.vendors)
    }
    targets = [f"{name}/{MODEL}" for name in accounts]
    said = {"providers": accounts, "routes": {"claude": {"targets": targets, "choose": "affinity"}}}
    file = tmp_path / "providers.yaml"
    file.write_text(json.dumps(said))
    flags = ("--processes", "3", "--providers", str(file), "--readiness.min-workers", "3")
    with running_node(tmp_path, flags=flags) as node:

        def all_ready() -> bool:
            # Each connection is another process's, by chance: of 30 none is left out but once in 60,000.
            return all(node.status("/readiness") == 200 for _ in range(30))

        node.process.wait_until(all_ready, "ready", 60.0)
        alone = MeshNode("n", "", node)
        rounds = [
            [messages_body("claude", talk, turn, system=8_000) for talk in range(TALKS)]
            for turn in range(3)
        ]
        for bodies in rounds:
            for body in bodies:
                assert call(alone, "POST", "/v1/messages", body).status == 200
        read = world.bill("cached_tokens")
        bodies = [body for several in rounds for body in several]
        assert read >= 0.95 * read_alone("anthropic", "/v1/messages", bodies)
        names = [f"account-{at}" for at in range(3)]
        metric = "smg_node_provider_cache_expected_tokens_total"
        node.process.wait_until(
            lambda: sum(node.metric(metric, provider=name) for name in names) >= 0.9 * read,
            "expecting what was read",
            30.0,
        )


def test_openai_is_given_a_key_that_keeps_a_conversation_together(tmp_path: Path) -> None:
    (tmp_path / "vendors").mkdir()
    kinds = ("--kind", "openai") * 2
    with running_stand_ins(tmp_path / "vendors", *kinds, "--port", "0", "--model", "*") as (
        vendors,
        _,
    ):
        accounts: dict[str, dict[str, object]] = {
            f"openai-{at}": {"kind": "openai", "base": vendor.base, "keys": [KEY]}
            for at, vendor in enumerate(vendors)
        }
        accounts["openai-1"]["cache_key_added"] = True
        routes = {
            f"gpt-{at}": {"targets": [f"openai-{at}/gpt-4.1-mini"], "choose": "affinity"}
            for at in range(2)
        }
        file = tmp_path / "providers.yaml"
        file.write_text(json.dumps({"providers": accounts, "routes": routes}))
        flags = ("--providers", str(file), "--readiness.min-workers", "0")
        with running_node(tmp_path, flags=flags) as node:
            alone = MeshNode("n", "", node)
            node.process.wait_until(
                lambda: all(ready(alone, name) for name in routes), "ready", 60.0
            )
            asked = (("/v1/messages", messages_body), ("/v1/chat/completions", chat_body))
            for at in range(2):
                for path, body in asked:
                    for turn in range(2):
                        answer = call(alone, "POST", path, body(f"gpt-{at}", 1, turn))
                        assert answer.status == 200, answer
        keys = [
            [
                json.loads(base64.b64decode(row["body"])).get("prompt_cache_key")
                for row in vendor.admin("/requests?last=4")
            ]
            for vendor in vendors
        ]
        # Translated from Messages, and then a client's own bytes.
        assert keys[0] == [keys[0][0]] * 2 + [None] * 2
        assert keys[1][2:] == [keys[1][2]] * 2
        assert None not in (keys[0][0], *keys[1])
        for vendor in vendors:
            assert sum(row["cached_tokens"] for row in vendor.admin("/bill")["rows"]) > 2 * 1_024
