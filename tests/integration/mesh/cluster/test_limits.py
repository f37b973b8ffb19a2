"""Limits of three real nodes: set on one, followed and added up by all, there again after a restart."""

import json
import signal
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from support.processes.mesh_nodes import MeshNode, smg_admin, until
from support.processes.mesh_trio import Trio
from support.processes.node_api import call, chat
from support.processes.shared_state_nodes import MODEL, Scene, running_scene

pytestmark = pytest.mark.integration

LIMITS = "/v1/cluster/limits"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with running_scene(tmp_path_factory.mktemp("limits")) as scene:
        yield scene


@pytest.fixture
def trio(scene: Scene) -> Iterator[Trio]:
    yield scene.trio
    node = scene.trio.living[0]
    for limit in defined(node):
        assert call(node, "DELETE", f"{LIMITS}/{limit}", headers={"if-match": "*"}).status == 200
    scene.as_found()


def limits(node: MeshNode, *words: str) -> Any:
    said = smg_admin("--url", node.node.url, "limits", *words, "--json")
    assert said.code == 0, said.err
    return json.loads(said.out)


def defined(node: MeshNode) -> dict[str, Any]:
    return {row["scope"]: row for row in node.get(LIMITS)["limits"]}


def test_what_is_spent_anywhere_is_added_up_everywhere(trio: Trio) -> None:
    view = limits(trio["a"], "set", "global", "--requests", "100000/hour", "--concurrency", "90")
    trio.on_all(lambda node: defined(node) == {"global": view}, "following")
    done: Counter[str] = Counter()
    for node in trio.living:
        for _ in range(5):
            # Who is the first to want something has to wait for an owner, for a second or two.
            until(lambda node=node: chat(node, MODEL).status == 200, "let in")  # type: ignore[misc]
            done[node.name] += 1

    def added_up(node: MeshNode) -> bool:
        shown = limits(node, "show")
        uses = {use["unit"]: use for use in shown["uses"]}
        spent = uses["requests"]["nodes"]
        return (
            shown["exact"]
            and not shown["silent"]
            and uses["requests"]["spent"] == 15
            and {name: one["spent"] for name, one in spent.items()} == done
        )

    trio.on_all(added_up, "adding up")
    rows = trio["b"].get(f"{LIMITS}/global?rows=true")["rows"]
    held = [row for name in "abc" for row in rows[name] if row["kind"] == "held"]
    assert sum(row["spent"] for row in held if "#requests" in row["key"]) == 15


def test_a_node_that_is_gone_is_named_and_comes_back_with_the_limits_it_knew(trio: Trio) -> None:
    limits(trio["b"], "set", "--scope", "tenant=*", "--requests", "5/second", "--mode", "strict")
    limits(trio["b"], "set", "--scope", "tenant=vip", "--requests", "50/second")
    trio.on_all(lambda node: set(defined(node)) == {"tenant=*", "tenant=vip"}, "following")
    before = defined(trio["b"])
    process = trio["c"].process
    process.signal(signal.SIGSTOP)
    try:
        shown = trio["a"].get(f"{LIMITS}/tenant=vip")
        assert list(shown["silent"]) in ([], ["c"])  # it may be out of sight already
        assert shown["exact"] is False
    finally:
        process.signal(signal.SIGCONT)
    trio.all_agree()
    assert trio.stop("c") == 0
    gone = limits(trio["a"], "unset", "tenant=vip")
    assert (gone["limit"]["scope"], gone["now"]["rule"]) == ("tenant=vip", "tenant=*")
    trio.start("c")
    trio.on_all(lambda node: defined(node) == {"tenant=*": before["tenant=*"]}, "following")


def test_a_change_is_refused_to_whoever_has_not_seen_the_present_one(trio: Trio) -> None:
    first = limits(trio["a"], "set", "--scope", "model=sim", "--concurrency", "50")
    trio.on_all(lambda node: "model=sim" in defined(node), "following")
    limits(trio["b"], "set", "--scope", "model=sim", "--concurrency", "51")
    until(lambda: defined(trio["c"])["model=sim"]["concurrency"] == 51, "following")
    lost = smg_admin(
        *("--url", trio["c"].node.url, "limits", "set", "--scope", "model=sim"),
        *("--concurrency", "52", "--if-version", first["version"]),
    )
    assert lost.code == 1
    assert "was changed by somebody else: 51 at a time" in lost.err

    def latest() -> list[Any]:
        history = trio["a"].get("/v1/cluster/audit?action=limit")["rows"]
        return [row for row in history if row["subject"] == "model=sim"][:2]

    # What is told of a change travels by itself, behind the change.
    until(lambda: [row["node"] for row in latest()] == ["b", "a"], "both in the audit log")
    assert latest()[0]["before"]["concurrency"] == 50
