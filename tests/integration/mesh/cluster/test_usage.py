"""What requests used at two real nodes: summed up at either, and there again after a kill and after a clean end."""

import json
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from smg_node.cluster.usage.usage_writer import WRITE_EVERY_S
from support.processes.mesh_nodes import (
    WAIT_S,
    MeshNode,
    flags_of,
    make_key,
    mesh_node,
    smg_admin,
    until,
)
from support.processes.node_api import Answer, call, ready_at
from support.processes.simulated_engines import running_simulated

pytestmark = pytest.mark.integration

USAGE: Final = "/v1/cluster/usage"
MODEL: Final = "sim"
TOKENS: Final = 2


@dataclass
class Pair:
    """Nodes a and b, each of which may live several times."""

    folder: Path
    key: Path
    workers: list[str]
    nodes: dict[str, MeshNode] = field(default_factory=dict)
    stacks: dict[str, ExitStack] = field(default_factory=dict)

    def start(self, name: str) -> None:
        join = [node.mesh for node in self.nodes.values()]
        given = flags_of(name, key=self.key, join=join)
        stack = self.stacks[name] = ExitStack()
        self.nodes[name] = stack.enter_context(mesh_node(self.folder / name, given))
        for node in self.nodes.values():
            node.awaits_states(**dict.fromkeys(self.nodes, "alive"))

    def end(self, name: str, number: signal.Signals) -> None:
        process = self.nodes.pop(name).process
        process.signal(number)
        process.wait(WAIT_S)
        said = process.said()
        self.stacks.pop(name).close()
        assert "Traceback" not in said, said

    def on_disk(self, name: str) -> str:
        folder = self.folder / name / "data" / "usage" / name
        return "".join(path.read_text() for path in sorted(folder.glob("usage-*.jsonl")))


@contextmanager
def running_pair(folder: Path) -> Iterator[Pair]:
    engines = ("--model", MODEL, "--script", "endless", "--itl-ms", "1")
    with running_simulated(folder / "engines", *engines, workers=1) as simulated:
        urls = [f"grpc://{address}" for address in simulated.addresses]
        pair = Pair(folder, make_key(folder), urls)
        try:
            pair.start("a")
            pair.start("b")
            for url in urls:
                added = pair.nodes["a"].admin("workers", "add", url)
                assert added.code == 0, added.err
            for node in pair.nodes.values():
                node.awaits("engines", lambda node=node: ready_at(node, urls))  # type: ignore[misc]  # bound now
            yield pair
        finally:
            for name in list(pair.nodes):
                pair.end(name, signal.SIGTERM)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with running_pair(tmp_path_factory.mktemp("usage")) as pair:
        yield pair


def talk(node: MeshNode, key: str, times: int) -> Mapping[str, int]:
    """Chat so often; return what the answers say that it cost."""
    used = {"requests": 0, "prompt_tokens": 0, "completion_tokens": 0}
    for _ in range(times):
        answer = said(node, key)
        assert answer.status == 200, answer
        used["requests"] += 1
        for name in ("prompt_tokens", "completion_tokens"):
            used[name] += answer.body["usage"][name]
    return used


def said(node: MeshNode, key: str, model: str = MODEL) -> Answer:
    asked = {
        "model": model,
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": TOKENS,
    }
    headers = {"authorization": f"Bearer {key}"} if key else {}
    return call(node, "POST", "/v1/chat/completions", asked, headers)


def sums(node: MeshNode, query: str = "") -> Any:
    return node.get(USAGE + query)


def total(node: MeshNode, query: str = "") -> Mapping[str, int]:
    found = sums(node, query)["total"]
    return {name: found[name] for name in ("requests", "prompt_tokens", "completion_tokens")}


def plus(one: Mapping[str, int], other: Mapping[str, int]) -> Mapping[str, int]:
    return {name: one[name] + other[name] for name in one}


def test_usage_is_summed_up_at_either_node_and_outlives_every_end(pair: Pair) -> None:
    a, b = pair.nodes["a"], pair.nodes["b"]
    made = json.loads(a.admin("keys", "create", "--tenant", "acme", "--json").out)
    key, key_id = made["key"], made["id"]
    # While data is open to everybody, a request with a key that is not known yet is nobody's.
    until(lambda: key_id in b.admin("keys", "list", "--json").out, "known at b")
    used = plus(talk(a, key, 3), talk(b, key, 4))
    one = talk(b, "", 1)
    assert said(a, key, "no-such-model").status == 404
    for node in (a, b):
        assert total(node, "?tenant=acme") == used
        assert total(node, f"?key={key_id}") == used
        assert total(node) == plus(used, one)
        shown = sums(node, "?by=tenant,model")
        assert (shown["exact"], shown["silent"]) == (True, {})
        assert shown["total"]["refused"] == 1
        assert [(row["tenant"], row["model"]) for row in shown["rows"] if row["requests"]] == [
            ("", MODEL),
            ("acme", MODEL),
        ]
        assert node.node.metric("smg_node_usage_requests_total", tenant="acme", model=MODEL) > 0
    own = call(b, "GET", "/v1/usage", headers={"authorization": f"Bearer {key}"})
    assert own.body["total"]["completion_tokens"] == used["completion_tokens"]

    # Killed without a word: what was used is there again but for the last seconds, here none.
    until(lambda: f'"{key_id}"' in pair.on_disk("b"), "on the disk of b")
    written = total(a)
    until(lambda: len(set(quiet(pair, "b"))) == 1, "quiet, so that all of it is written")
    pair.end("b", signal.SIGKILL)
    a.awaits_states(b="dead")
    alone = sums(a)
    assert (alone["exact"], list(alone["silent"])) == (False, ["b"])
    assert alone["total"]["requests"] < written["requests"]
    pair.start("b")
    for node in pair.nodes.values():
        until(lambda node=node: sums(node)["exact"], "exact again")  # type: ignore[misc]  # bound now
        assert total(node) == written

    # Ended cleanly right after a request: nothing is missing.
    pair.nodes["b"].awaits("engines", lambda: ready_at(pair.nodes["b"], pair.workers))
    last = talk(pair.nodes["b"], key, 2)
    pair.end("b", signal.SIGTERM)
    a.awaits_states(b="left")
    pair.start("b")
    for node in pair.nodes.values():
        until(lambda node=node: sums(node)["exact"], "exact again")  # type: ignore[misc]  # bound now
        assert total(node) == plus(written, last)
    table = smg_admin("--url", pair.nodes["b"].node.url, "usage", "--tenant", "acme", "--by", "key")
    assert table.code == 0, table.err
    assert [line.split()[:2] for line in table.out.splitlines()] == [
        ["KEY", "REQUESTS"],
        [key_id, str(total(a, "?tenant=acme")["requests"])],
    ]
    assert key.rpartition("-")[2] not in pair.on_disk("a") + pair.on_disk("b")


def quiet(pair: Pair, name: str) -> Iterator[str]:
    """Yield what is on a node's disk, twice, with more than the time between two writes in between."""
    yield pair.on_disk(name)
    time.sleep(2 * WRITE_EVERY_S)
    yield pair.on_disk(name)
