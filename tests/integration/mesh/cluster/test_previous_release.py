"""Nodes of the release before this one, beside nodes of this one, in one cluster that works meanwhile.

The tests go on from each other: three old nodes, one of them new, two of them new, and the first of them old again.
The old release knows nothing of providers: it passes none on, and goes on with everything else.
"""

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest

from support.http.chat_client import begin, finishes_of, port_of
from support.http.chat_client import chat as a_chat
from support.http.raw_http import connect
from support.processes.mesh_nodes import MeshNode, make_key, until
from support.processes.mesh_trio import NAMES, Trio
from support.processes.node_api import (
    asked_all_the_time,
    call,
    change_setting,
    chat,
    ready_at,
    setting,
)
from support.processes.previous_release import CURRENT, Release, previous_release
from support.processes.shared_state_nodes import add
from support.processes.simulated_engines import running_simulated
from support.providers.stand_ins import running_stand_ins

pytestmark = pytest.mark.integration

MODEL = "sim"
KEY = "http.body_max_bytes"
LIMIT = 12
STREAMS = 4
# What the release before this one does not know, and the provider that is defined all the same.
UNKNOWN = ("providers",)
PROVIDER = "/v1/cluster/providers/anthropic-a"
CLAUDE = "claude-sonnet-5"
VENDOR_KEY = "sk-rolling-0123456789"
# A second and more at 10 ms each: they are under way when their node is told to go.
LONG = {**a_chat(MODEL), "max_tokens": 120}


@dataclass
class Mixed:
    """Three nodes that begin as the release before this one, and the engines that all of them know."""

    trio: Trio
    old: Release
    urls: list[str]
    besides: tuple[str, ...] = ()
    """Kinds of state that old nodes do not know and new ones hold."""

    async def restarted(self, name: str, release: Release) -> None:
        """Restart a node on its files as that release, with streams at it and work at the others; nobody sees it."""
        others = [node for node in self.trio.living if node.name != name]
        async with AsyncExitStack() as stack:
            streams = []
            for _ in range(STREAMS):
                client = await stack.enter_async_context(connect(port_of(self.trio[name].node.url)))
                streams.append(await begin(client, LONG))
            for stream in streams:
                await stream.until_text()
            with asked_all_the_time(others, MODEL, self.urls) as went:
                async with asyncio.TaskGroup() as group:
                    ending = group.create_task(asyncio.to_thread(self.trio.stop, name))
                    told = [await stream.to_end() for stream in streams]
                code = ending.result()
                # Here and not in a thread: a process ends with the thread that started it.
                self.trio.start(name, release=release).awaits_ready()
                self.trio.all_agree(besides=self.besides)
        assert code == 0
        assert [(one.done, finishes_of(one)) for one in told] == [(True, ["length"])] * STREAMS
        for seen in went.values():
            assert seen.answers > 0
            assert (seen.failed, seen.missed) == ([], [])
        self.trio.on_all(lambda node: ready_at(node, self.urls), "knowing the engines")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mixed]:
    folder = tmp_path_factory.mktemp("mixed")
    old = previous_release(folder / "old")
    flags = ("--model", MODEL, "--script", "endless", "--itl-ms", "10", "--slots", "1024")
    with running_simulated(folder / "engines", *flags) as engines:
        trio = Trio(folder, make_key(folder))
        try:
            for name in NAMES:
                trio.start(name, release=old)
            trio.all_agree()
            urls = [f"grpc://{address}" for address in engines.addresses]
            add(trio["a"], urls[0])
            trio.on_all(lambda node: ready_at(node, urls[:1]), "knowing the first engine")
            yield Mixed(trio, old, urls[:1])
        finally:
            trio.close()


@pytest.fixture(scope="module")
def vendor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base address of a stand-in of Anthropic."""
    flags = ("--kind", "anthropic", "--port", "0", "--key", VENDOR_KEY, "--model", "*")
    with running_stand_ins(tmp_path_factory.mktemp("vendor"), *flags) as ((stand_in,), _):
        yield stand_in.base


def _is_set(node: MeshNode, value: int) -> bool:
    return bool(setting(node, KEY)["value"] == value)


async def test_a_node_becomes_the_new_release_and_nobody_sees_it(mixed: Mixed) -> None:
    assert change_setting(mixed.trio["c"], KEY, 1_234_567).status == 200
    mixed.trio.on_all(lambda node: _is_set(node, 1_234_567), "following the setting")
    await mixed.restarted("a", CURRENT)
    mixed.trio.on_all(lambda node: _is_set(node, 1_234_567), "keeping the setting")


def test_what_one_release_changes_the_other_follows(mixed: Mixed) -> None:
    trio = mixed.trio
    for at, name in enumerate("ab"):
        assert change_setting(trio[name], KEY, 2_000_000 + at).status == 200
        trio.on_all(lambda node, at=at: _is_set(node, 2_000_000 + at), "following")  # type: ignore[misc]  # bound now
        # Each is asked of the other release.
        other = "ba"[at]
        assert trio[name].admin("cluster", "drain", other).code == 0
        assert trio[other].node.status("/readiness") == 503
        assert trio[name].admin("cluster", "undrain", other).code == 0
        assert trio[other].node.status("/readiness") == 200
    trio.all_agree()


def test_a_strict_limit_holds_to_the_request_across_releases(mixed: Mixed) -> None:
    trio = mixed.trio
    # Nothing stands with the nodes: such a part is there from the next window on only.
    words = ("--scope", f"model={MODEL}", "--requests", f"{LIMIT}/day", "--mode", "strict")
    made = trio["a"].admin("limits", "set", *words, "--standing", "0", "--json")
    assert made.code == 0, made.err
    path = f"/v1/cluster/limits/{json.loads(made.out)['scope']}"
    trio.on_all(lambda node: call(node, "GET", path).status == 200, "following the limit")
    let_in: list[str] = []

    def ask_all() -> bool:
        let_in.extend(node.name for node in trio.living if chat(node, MODEL).status == 200)
        return len(let_in) >= LIMIT

    until(ask_all, "all that the limit allows let in")
    for _ in range(5):
        ask_all()
    assert len(let_in) == LIMIT, let_in
    assert call(trio["b"], "DELETE", path, headers={"if-match": "*"}).status == 200
    trio.on_all(lambda node: call(node, "GET", path).status == 404, "having no limit")


def test_a_limit_of_tools_is_none_of_requests_to_nodes_that_do_not_know_it(mixed: Mixed) -> None:
    trio = mixed.trio
    scopes = ("tool=*", "tool=search/*", f"model={MODEL},tool=search/web")
    for scope in scopes:
        words = ("--scope", scope, "--requests", "0/day", "--cost", "0/day", "--concurrency", "0")
        made = trio["a"].admin("limits", "set", *words)
        assert made.code == 0, made.err
    trio.all_agree()
    # Read without the tool, each is a limit of nothing on all requests, or on those of the model.
    for node in trio.living:
        assert [chat(node, MODEL).status for _ in range(3)] == [200] * 3
    assert trio["a"].admin("limits", "list").out.count("tool=") == len(scopes)
    for name in "bc":
        assert call(trio[name], "GET", f"/v1/cluster/limits/{scopes[1]}").status == 400
    for scope in scopes:
        assert trio["a"].admin("limits", "unset", scope).code == 0
    trio.all_agree()


def test_a_provider_defined_on_a_new_node_leaves_the_old_ones_as_they_are(
    mixed: Mixed, vendor: str
) -> None:
    trio = mixed.trio
    mixed.besides = UNKNOWN
    body = {"kind": "anthropic", "base": vendor, "models": [CLAUDE], "keys": [VENDOR_KEY]}
    made = call(trio["a"], "PUT", PROVIDER, body, {"if-match": "*"})
    assert made.status == 200, made
    trio["a"].awaits(
        "serving the provider", lambda: chat(trio["a"], CLAUDE, tokens=8).status == 200
    )
    # The old ones take what they know from the new one and give it what they change, both ways, as before.
    for value, name in ((2_000_002, "a"), (2_000_003, "b")):
        assert change_setting(trio[name], KEY, value).status == 200
        trio.on_all(lambda node, value=value: _is_set(node, value), "following")  # type: ignore[misc]  # bound now
    trio.all_agree(besides=UNKNOWN)
    for name in "bc":
        answer = chat(trio[name], CLAUDE)
        assert (answer.status, answer.error["code"]) == (404, "model_not_found")
        assert chat(trio[name], MODEL).status == 200


async def test_a_node_goes_back_to_the_old_release_on_files_of_the_new_one(mixed: Mixed) -> None:
    await mixed.restarted("b", CURRENT)
    trio = mixed.trio
    trio["b"].awaits(
        "serving the provider", lambda: chat(trio["b"], CLAUDE, tokens=8).status == 200
    )
    await mixed.restarted("a", mixed.old)
    kept = 2_000_003
    trio.on_all(lambda node: _is_set(node, kept), "keeping what the new one wrote")
    assert chat(trio["b"], CLAUDE, tokens=8).status == 200
    # Forward again, on files that the old release wrote last: what it does not know comes from the other new node.
    await mixed.restarted("a", CURRENT)
    trio["a"].awaits(
        "serving the provider", lambda: chat(trio["a"], CLAUDE, tokens=8).status == 200
    )
    assert VENDOR_KEY not in trio.logs()
