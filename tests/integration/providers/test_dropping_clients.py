"""Clients that drop what vendors want back: their loops of tools go on, at any node that shares the store.

The stand-ins are strict: they refuse a turn whose state was lost, and what their vendors take in its place.
"""

import base64
import json
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle, repeat
from pathlib import Path
from typing import Any

import pytest
import redis

from support.clients.dropping_clients import (
    ChatClient,
    Client,
    MessagesClient,
    RefusedError,
    loop,
    post,
)
from support.processes.mesh_nodes import MeshNode, flags_of, make_key, mesh_node
from support.processes.node import RunningNode, running_node
from support.providers.stand_ins import KEY, KEY_ID, SECRET, running_stand_ins
from support.stores.postgres_server import running_postgres
from support.stores.redis_server import Redis, running_redis

pytestmark = pytest.mark.integration

AWS = {"credentials": {"kind": "aws", "access_key_id": KEY_ID, "secret_access_key": SECRET}}
# By its own Chat OpenAI gives no state at all, so it is asked by Responses.
RESPONSES = {"models": [{"model": "gpt-5.6-sol", "dialects": ["responses"]}]}
# Kind of hosting: what else its definition says, and a model of it that thinks and signs.
VENDORS: dict[str, tuple[dict[str, Any], str]] = {
    "openai": ({"keys": [KEY], **RESPONSES}, "gpt-5.6-sol"),
    "anthropic": ({"keys": [KEY]}, "claude-sonnet-5"),
    "gemini": ({"keys": [KEY]}, "gemini-3-flash"),
    "bedrock": ({**AWS, "region": "eu-central-1"}, "eu.anthropic.claude-sonnet-5"),
}
CLIENTS: dict[str, type[ChatClient | MessagesClient]] = {
    "chat": ChatClient,
    "messages": MessagesClient,
}
# Where the vendor speaks the client's API its bytes pass as they are: what the client drops is its own loss.
NATIVE = {("anthropic", "messages")}
PAIRS = [(kind, api) for kind in VENDORS for api in CLIENTS if (kind, api) not in NATIVE]


@dataclass(frozen=True)
class World:
    """Nodes a and b of one mesh with a key, which share a store, in front of strict stand-ins."""

    a: MeshNode
    b: MeshNode
    definitions: Path
    store: Redis


def definitions(folder: Path, stack: ExitStack, *flags: str) -> Path:
    """Return a file with a provider and a route for each vendor, all of them running stand-ins."""
    kinds = [word for kind in VENDORS for word in ("--kind", kind)]
    stands, _ = stack.enter_context(running_stand_ins(folder, *kinds, "--model", "*", *flags))
    said = {
        kind: {"kind": kind, "base": stand.base, **VENDORS[kind][0]}
        for kind, stand in zip(VENDORS, stands, strict=True)
    }
    routes = {kind: {"targets": [f"{kind}/{model}"]} for kind, (_, model) in VENDORS.items()}
    file = folder / "providers.json"
    file.write_text(json.dumps({"providers": said, "routes": routes}))
    return file


def flags(file: Path, store: str) -> Sequence[str]:
    enough = ("--readiness.min-workers", str(len(VENDORS)))
    # A machine that is busy with other tests may take its time; state that is waited for is not lost.
    patient = ("--storage.timeout-s", "30")
    return ("--providers", str(file), *enough, "--store", store, *patient)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("dropping")
    key = make_key(folder)
    with ExitStack() as stack:
        file = definitions(folder, stack, "--strict")
        store = stack.enter_context(running_redis(folder, own=True))
        own = flags(file, store.url)
        a = stack.enter_context(mesh_node(folder / "a", [*flags_of("a", key=key), *own]))
        joined = flags_of("b", key=key, join=[a.mesh])
        b = stack.enter_context(mesh_node(folder / "b", [*joined, *own]))
        for node in (a, b):
            node.awaits_states(a="alive", b="alive")
            node.awaits_ready()
        yield World(a, b, file, store)


@pytest.mark.parametrize(("kind", "api"), PAIRS)
def test_three_rounds_of_calls_end_with_an_answer(world: World, kind: str, api: str) -> None:
    client: Client = CLIENTS[api]()
    loop(client, repeat(world.a.node.url), kind)
    assert client.rounds == 3
    assert client.text


@pytest.mark.parametrize(("kind", "api"), PAIRS)
def test_each_round_is_asked_of_another_node(world: World, kind: str, api: str) -> None:
    client: Client = CLIENTS[api]()
    loop(client, cycle([world.a.node.url, world.b.node.url]), kind)
    assert client.rounds == 3
    assert client.text


@pytest.mark.parametrize("kind", VENDORS)
def test_a_stream_leaves_its_state_too(world: World, kind: str) -> None:
    client = ChatClient(stream=True)
    loop(client, cycle([world.a.node.url, world.b.node.url]), kind)
    assert client.rounds == 3
    assert client.text


def test_a_loop_goes_on_after_its_node_was_killed(world: World, tmp_path: Path) -> None:
    own = flags(world.definitions, world.store.url)
    clients: dict[tuple[str, str], Client] = {pair: CLIENTS[pair[1]]() for pair in PAIRS}
    joined = flags_of("c", key=world.definitions.parent / "mesh.key", join=[world.a.mesh])
    with mesh_node(tmp_path, [*joined, *own]) as doomed:
        doomed.awaits_ready()
        for (kind, _), client in clients.items():
            for _ in range(2):
                assert client.ask(doomed.node.url, kind)
        doomed.process.signal(signal.SIGKILL)
        doomed.process.wait(10)
    for (kind, _), client in clients.items():
        loop(client, repeat(world.b.node.url), kind)
        assert client.rounds == 3
        assert client.text


def test_nodes_that_share_a_database_find_the_state(world: World, tmp_path: Path) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(running_postgres(tmp_path))
        own = (*flags(world.definitions, server.url), "--storage.auto-migrate", "on")
        nodes = []
        for name in ("d", "e"):
            (tmp_path / name).mkdir()
            named = (*own, "--name", name)
            nodes.append(stack.enter_context(running_node(tmp_path / name, flags=named)))
        for node in nodes:
            node.process.wait_until(lambda node=node: node.status("/readiness") == 200, "ready", 60)  # type: ignore[misc]  # bound now
        for kind, api in PAIRS:
            client: Client = CLIENTS[api]()
            loop(client, cycle([node.url for node in nodes]), kind)
            assert client.rounds == 3
        assert nodes[0].metric("smg_node_store_operations_total", op="keep_state") > 0
        assert nodes[1].metric("smg_node_store_operations_total", op="find_state") > 0


def test_where_nothing_is_kept_the_state_is_lost(world: World, tmp_path: Path) -> None:
    own = (*flags(world.definitions, world.store.url), "--providers.state-kept-s", "0")
    with running_node(tmp_path, flags=own) as node:
        node.process.wait_until(lambda: node.status("/readiness") == 200, "ready", 60)
        for kind, api in PAIRS:
            client: Client = CLIENTS[api]()
            assert client.ask(node.url, kind)
            with pytest.raises(RefusedError) as refused:
                loop(client, repeat(node.url), kind)
            assert refused.value.status == 400, refused.value


def test_what_is_kept_is_sealed(world: World) -> None:
    assert ChatClient().ask(world.a.node.url, "anthropic")
    client = redis.Redis.from_url(world.store.url)
    rows = [client.hvals(key) for key in client.keys("*state_*")]
    assert rows
    told = b" ".join(value for row in rows for value in row if isinstance(value, bytes))
    packed = re.findall(rb'"([A-Za-z0-9+/=]{100,})"', told)
    assert packed
    for text in (told, *map(base64.b64decode, packed)):
        assert b"signature" not in text
        assert b"anthropic" not in text


def test_a_tenant_has_nothing_of_another_one(world: World, tmp_path: Path) -> None:
    with running_node(tmp_path, flags=flags(world.definitions, "sqlite:///history.db")) as node:
        node.process.wait_until(lambda: node.status("/readiness") == 200, "ready", 60)
        admin = made_key(node, role="admin")
        acme, other = (made_key(node, admin, tenant=name) for name in ("acme", "other"))
        mine, theirs = ChatClient(key=acme), ChatClient(key=other)
        for _ in range(2):
            assert mine.ask(node.url, "gemini")
        theirs.messages = list(mine.messages)
        with pytest.raises(RefusedError):
            theirs.ask(node.url, "gemini")
        loop(mine, repeat(node.url), "gemini")
        assert mine.rounds == 3


def made_key(node: RunningNode, admin: str = "", **wish: str) -> str:
    return str(json.loads(post(f"{node.url}/v1/cluster/keys", wish, admin))["key"])


def test_every_process_of_a_node_has_the_cache(world: World, tmp_path: Path) -> None:
    own = (*flags(world.definitions, "sqlite:///history.db"), "--processes", "2")
    with running_node(tmp_path, flags=own) as node:
        node.process.wait_until(lambda: node.status("/readiness") == 200, "ready", 60)
        for _ in range(3):
            client = ChatClient()
            loop(client, repeat(node.url), "gemini")
            assert client.rounds == 3


def test_a_store_that_fails_costs_state_and_no_request(tmp_path: Path) -> None:
    with ExitStack() as stack:
        file = definitions(tmp_path, stack)
        server = stack.enter_context(running_redis(tmp_path, own=True))
        node = stack.enter_context(running_node(tmp_path, flags=flags(file, server.url)))
        node.process.wait_until(lambda: node.status("/readiness") == 200, "ready", 60)
        client = ChatClient()
        assert client.ask(node.url, "gemini")
        server.server.kill9()
        loop(client, repeat(node.url), "gemini")
        assert client.rounds == 3
        assert client.text
