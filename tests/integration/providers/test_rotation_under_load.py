"""Keys and tokens that change under load: one is added, drained and removed, tokens end every few seconds; nothing fails.

Two nodes of one mesh are asked by several clients at a time, for streams and whole answers of two vendors' APIs.
"""

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from support.processes.mesh_nodes import MeshNode, flags_of, make_key, mesh_node
from support.processes.node_api import call
from support.providers.stand_ins import StandIn, running_stand_ins

pytestmark = pytest.mark.integration

FIRST, SECOND, THIRD = (f"sk-{name}-0123456789" for name in ("first", "second", "third"))
TOKEN_LIFE_S: Final = 5
PROVIDERS: Final = "/v1/cluster/providers"
CLAUDE, GEMINI = "claude-sonnet-5", "gemini-2.5-flash"
THREADS: Final = 3
"""For each node."""
TOKENS_MIN: Final = 8


@dataclass
class World:
    """Nodes a and b, and a stand-in of Anthropic and one of Vertex, whose tokens hardly live."""

    a: MeshNode
    b: MeshNode
    anthropic: StandIn
    vertex: StandIn

    def define(self, name: str, **more: Any) -> str:
        """Define a provider on node a; return its version, once both nodes have it."""
        made = call(self.a, "PUT", f"{PROVIDERS}/{name}", more, {"if-match": "*"})
        assert made.status == 200, made
        version = str(made.body["version"])
        for node in (self.a, self.b):
            node.awaits("defined", lambda node=node: served(node, name, version))  # type: ignore[misc]  # bound now
        return version


def served(node: MeshNode, name: str, version: str) -> bool:
    answer = call(node, "GET", f"{PROVIDERS}/{name}")
    return (
        answer.status == 200
        and answer.body["version"] == version
        and all(target["state"] == "ready" for target in answer.body["targets"])
    )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("rotation")
    key = make_key(folder)
    kinds = ("--kind", "anthropic", "--kind", "vertex", "--port", "0", "--model", "*")
    own = ("--key", FIRST, "--itl-ms", "3", "--token-life-s", str(TOKEN_LIFE_S))
    with ExitStack() as stack:
        stands, _ = stack.enter_context(running_stand_ins(folder, *kinds, *own))
        a = stack.enter_context(mesh_node(folder / "a", flags_of("a", key=key)))
        joined = flags_of("b", key=key, join=[a.mesh])
        b = stack.enter_context(mesh_node(folder / "b", joined))
        for node in (a, b):
            node.awaits_states(a="alive", b="alive")
            node.awaits_ready()
        yield World(a, b, *stands)
        for node in (a, b):
            told = node.process.said()
            assert [secret for secret in (FIRST, SECOND, THIRD) if secret in told] == []


# ── Load ─────────────────────────────────────────────────────────────────────


@dataclass
class Load:
    """What clients were told so far: how many answers each has had, and what was no good answer."""

    answers: list[int] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def rounds(self, node: MeshNode, what: str, more: int = 2) -> None:
        """Return when each client has had so many more answers: none of them began before."""
        before = list(self.answers)

        def done() -> bool:
            pairs = zip(before, self.answers, strict=True)
            return bool(self.failures) or all(now >= then + more for then, now in pairs)

        node.awaits(what, done)


@contextmanager
def asking(world: World, model: str) -> Iterator[Load]:
    """Ask both nodes meanwhile, each by several clients without a pause."""
    load, over = Load([0] * (2 * THREADS)), threading.Event()

    def ask(number: int, node: MeshNode) -> None:
        for turn in count():
            if over.is_set():
                return
            said = failure_of(node, model, streamed=bool(turn % 2))
            if said:
                load.failures.append(said)
            load.answers[number] += 1

    nodes = (world.a, world.b) * THREADS
    threads = [
        threading.Thread(target=ask, args=(number, node)) for number, node in enumerate(nodes)
    ]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        over.set()
        for thread in threads:
            thread.join()


def failure_of(node: MeshNode, model: str, *, streamed: bool) -> str:
    """Return what is wrong with an answer, "" for a good one."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "words=12"}],
        "max_tokens": 400,
        "stream": streamed,
    }
    request = urllib.request.Request(
        f"{node.node.url}/v1/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            told = answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return f"{error.code} {error.read().decode(errors='replace')}"
    whole = told.rstrip().endswith("data: [DONE]") if streamed else "choices" in json.loads(told)
    return "" if whole and '"error"' not in told else told


def claude(world: World, *keys: str) -> Mapping[str, Any]:
    return {
        "kind": "anthropic",
        "base": world.anthropic.base,
        "models": [CLAUDE],
        "keys": list(keys),
    }


def shown(vendor: StandIn, last: int) -> set[str]:
    """Return the keys and tokens of the newest requests."""
    rows = vendor.admin(f"/requests?last={last}")
    return {row["headers"]["authorization"].removeprefix("Bearer ") for row in rows}


def test_keys_are_added_drained_and_removed(world: World) -> None:
    vendor = world.anthropic
    world.define("anthropic-a", **claude(world, FIRST))
    with asking(world, CLAUDE) as load:
        load.rounds(world.a, "answers by the first key")
        # Added: good at the vendor before any node knows of it.
        vendor.admin("/keys", {"add": [SECOND]})
        world.define("anthropic-a", **claude(world, FIRST, SECOND))
        load.rounds(world.a, "answers by both keys", 4)
        assert shown(vendor, 6 * THREADS) == {FIRST, SECOND}
        # Drained: no new call has it, and calls that do have it end with it.
        world.define("anthropic-a", **claude(world, SECOND))
        load.rounds(world.a, "answers by the second key alone")
        assert shown(vendor, 2 * THREADS) == {SECOND}
        # Removed at the vendor, where nothing needs it any more.
        vendor.admin("/keys", {"remove": [FIRST]})
        load.rounds(world.a, "answers after the first key is gone", 4)
        vendor.admin("/keys", {"add": [THIRD]})
        world.define("anthropic-a", **claude(world, THIRD))
        load.rounds(world.a, "answers by the third key")
        assert shown(vendor, 2 * THREADS) == {THIRD}
        vendor.admin("/keys", {"remove": [SECOND]})
        load.rounds(world.a, "answers after the second key is gone", 4)
    vendor.admin("/keys", {"add": [FIRST], "remove": [THIRD]})
    assert load.failures == []
    assert min(load.answers) >= 18


def test_tokens_end_every_few_seconds(world: World) -> None:
    key = generate_private_key(public_exponent=65_537, key_size=2_048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    account = {
        "type": "service_account",
        "client_email": "node@p.iam.gserviceaccount.com",
        "private_key": pem,
        "token_uri": f"{world.vertex.url}/_vendor/token",
    }
    world.define(
        "vertex-a",
        kind="vertex",
        base=world.vertex.base,
        project="p",
        location="eu",
        models=[GEMINI],
        credentials={"kind": "gcp", "service_account": json.dumps(account)},
    )
    tokens: set[str] = set()
    with asking(world, GEMINI) as load:

        def enough() -> bool:
            tokens.update(shown(world.vertex, 256))
            return bool(load.failures) or len(tokens) >= TOKENS_MIN

        # Each node makes its own, and each lives for five seconds at most.
        world.a.awaits("tokens that follow each other", enough)
        load.rounds(world.a, "answers by the last of them")
    assert load.failures == []
    assert len(tokens) >= TOKENS_MIN
    assert min(load.answers) >= 10


def test_a_key_that_its_vendor_takes_away_costs_no_request(world: World) -> None:
    vendor = world.anthropic
    vendor.admin("/keys", {"add": [SECOND]})
    world.define("anthropic-a", **claude(world, FIRST, SECOND))
    with asking(world, CLAUDE) as load:
        load.rounds(world.a, "answers by both keys", 4)
        vendor.admin("/keys", {"remove": [FIRST]})
        load.rounds(world.a, "answers by the key that is left", 6)
    vendor.admin("/keys", {"add": [FIRST], "remove": [SECOND]})
    assert load.failures == []
