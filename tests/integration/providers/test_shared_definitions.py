"""Providers of a cluster of two real nodes: defined on one, served by both; keys rotated and taken away under load."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.processes.mesh_nodes import MeshNode, flags_of, make_key, mesh_node
from support.processes.node_api import Answer, call, chat
from support.providers.stand_ins import StandIn, running_stand_ins

pytestmark = pytest.mark.integration

PROVIDERS = "/v1/cluster/providers"
ROUTES = "/v1/cluster/routes"
MODEL = "claude-sonnet-5"
OLD, NEW = "sk-old-0123456789", "sk-new-0123456789"


@dataclass
class World:
    """Nodes a and b of one mesh with a key, and a stand-in of Anthropic that lets in the old key."""

    a: MeshNode
    b: MeshNode
    vendor: StandIn

    def put(self, path: str, body: Any, node: MeshNode | None = None) -> Answer:
        return call(node or self.a, "PUT", path, body, {"if-match": "*"})

    def delete(self, path: str) -> Answer:
        return call(self.a, "DELETE", path, headers={"if-match": "*"})

    def everywhere(self, what: str, path: str, name: str) -> None:
        """Return when both nodes have that provider or route with all targets ready."""
        for node in (self.a, self.b):
            node.awaits(what, lambda node=node: ready(node, f"{path}/{name}"))  # type: ignore[misc]  # bound now


def ready(node: MeshNode, path: str) -> bool:
    answer = call(node, "GET", path)
    return answer.status == 200 and all(
        target["state"] == "ready" for target in answer.body["targets"]
    )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("providers")
    key = make_key(folder)
    (folder / "vendor").mkdir()
    flags = ("--kind", "anthropic", "--port", "0", "--key", OLD, "--model", "*")
    with (
        running_stand_ins(folder / "vendor", *flags) as ((vendor,), _),
        mesh_node(folder / "a", flags_of("a", key=key)) as a,
        mesh_node(folder / "b", flags_of("b", key=key, join=[a.mesh])) as b,
    ):
        for node in (a, b):
            node.awaits_states(a="alive", b="alive")
            node.awaits_ready()
        yield World(a, b, vendor)
        for node in (a, b):
            assert OLD not in node.process.said()
            assert NEW not in node.process.said()


@contextmanager
def asking(node: MeshNode) -> Iterator[list[Answer]]:
    """Ask a node for chats one after the other meanwhile; yield the answers."""
    answers: list[Answer] = []
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            answers.append(chat(node, MODEL, tokens=16))

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield answers
    finally:
        over.set()
        thread.join()


def body_of(world: World, **more: Any) -> dict[str, Any]:
    return {"kind": "anthropic", "base": world.vendor.base, "models": [MODEL], **more}


@pytest.fixture
def defined(world: World) -> Iterator[str]:
    """A provider with the old key, made on node a, that both nodes serve; gone afterwards."""
    made = world.put(f"{PROVIDERS}/anthropic-a", body_of(world, keys=[OLD]))
    assert made.status == 200, made
    world.everywhere("served", PROVIDERS, "anthropic-a")
    yield made.body["version"]
    removed = world.delete(f"{PROVIDERS}/anthropic-a")
    assert (removed.status, removed.body["now"]) == (200, None), removed
    for node in (world.a, world.b):
        node.awaits("gone", lambda node=node: chat(node, MODEL).status == 404)  # type: ignore[misc]  # bound now
        assert chat(node, MODEL).error["code"] == "model_not_found"


def test_a_provider_of_one_node_is_served_by_the_other(world: World, defined: str) -> None:
    shown = world.b.get(f"{PROVIDERS}/anthropic-a")
    assert (shown["source"], shown["owner"], shown["version"]) == ("cluster", "a", defined)
    assert [key["reference"] for key in shown["keys"]] == ["(set)"]
    answer = chat(world.b, MODEL, tokens=16)
    assert answer.status == 200, answer
    assert answer.body["choices"][0]["message"]["content"]
    # What is said without keys, on the other node, leaves them as they are.
    changed = world.put(f"{PROVIDERS}/anthropic-a", body_of(world, labels={"zone": "eu"}), world.b)
    assert changed.status == 200, changed
    world.everywhere("changed", PROVIDERS, "anthropic-a")
    assert chat(world.a, MODEL, tokens=16).status == 200


def test_a_key_is_rotated_without_a_request_that_fails(world: World, defined: str) -> None:
    world.vendor.admin("/keys", {"add": [NEW]})
    with asking(world.b) as answers:
        rotated = world.put(f"{PROVIDERS}/anthropic-a", body_of(world, keys=[NEW]))
        assert rotated.status == 200, rotated
        version = rotated.body["version"]
        assert version != defined
        world.b.awaits(
            "rotated", lambda: world.b.get(f"{PROVIDERS}/anthropic-a")["version"] == version
        )
        before = len(answers)
        world.b.awaits("more chats", lambda: len(answers) > before + 3)
        world.vendor.admin("/keys", {"remove": [OLD]})
        taken = len(answers)
        world.b.awaits("chats with the new key", lambda: len(answers) > taken + 3)
    world.vendor.admin("/keys", {"add": [OLD]})
    assert [one.status for one in answers if one.status != 200] == []


def test_a_route_keeps_its_provider_from_being_removed(world: World, defined: str) -> None:
    routed = world.b.admin("routes", "set", "claude", "--to", f"anthropic-a/{MODEL}")
    assert routed.code == 0, routed
    world.everywhere("routed", ROUTES, "claude")
    assert chat(world.a, "claude", tokens=16).status == 200
    refused = world.delete(f"{PROVIDERS}/anthropic-a")
    assert (refused.status, refused.error["code"]) == (409, "provider_in_use")
    explained = world.b.admin("providers", "explain", "claude")
    assert explained.code == 0, explained
    assert "translated" in explained.out
    assert "native" in explained.out
    assert world.delete(f"{ROUTES}/claude").status == 200
    world.b.awaits("gone", lambda: chat(world.b, "claude").status == 404)
    rows = world.b.get("/v1/cluster/audit?limit=100")["rows"]
    assert [row["action"] for row in rows[:3]] == ["route.remove", "route.set", "provider.set"]
    assert OLD not in str(rows)
    assert NEW not in str(rows)


def test_secrets_are_on_no_disk_in_plain(
    world: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert world.put(f"{PROVIDERS}/anthropic-b", body_of(world, keys=[NEW])).status == 200
    world.everywhere("served", PROVIDERS, "anthropic-b")
    folder = Path(tmp_path_factory.getbasetemp())

    def saved() -> list[Path]:
        return list(folder.glob("providers*/*/data/**/providers-*"))

    for node in (world.a, world.b):
        node.awaits("saved", lambda: len(saved()) >= 2)
    files = [path for path in folder.glob("providers*/*/data/**/*") if path.is_file()]
    assert files
    assert not [path for path in files if NEW.encode() in path.read_bytes()]
    assert world.delete(f"{PROVIDERS}/anthropic-b").status == 200
