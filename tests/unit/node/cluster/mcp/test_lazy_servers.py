"""Servers of tools that are made when there are some: by the cluster, a file, or clients; and that change."""

import asyncio
import json

import pytest

from smg_node.cluster.mcp.lazy_servers import LazyToolServers
from smg_node.mcp.failures import Failure, FailureKind
from smg_node.mcp.tools.tool_result import CallResult
from support.mcp.faulty_server import served, until
from support.mcp.recording_server import recorded
from support.mcp.server_steps import call, define, on, refusal, remove, resolved, world
from support.mcp.tool_desks import context, lazy_servers, service_of


def test_there_are_none_until_one_is_defined_and_none_after_the_last_is_removed() -> None:
    state = world()
    servers = lazy_servers("c", state)
    assert (servers.has(), servers.get()) == (False, None)
    state.nodes["a"].providers.set("provider/x", {"spec": {}}, version=None)
    assert not servers.has()
    define(state, "docs", "https://docs.example/mcp")
    assert servers.has()
    assert servers.get() is servers.get() is not None
    remove(state, "docs")
    assert (servers.has(), servers.get()) == (False, None)


def test_there_are_some_where_a_file_or_clients_name_them() -> None:
    own = json.dumps({"servers": {"files": {"command": "cat"}}})
    assert lazy_servers("a", world(), own).has()
    assert not lazy_servers("a", world(), "{}").has()
    assert lazy_servers("a", world(), dynamic=True).has()


def test_the_clusters_definition_goes_before_the_nodes_own() -> None:
    state = world()
    own = json.dumps(
        {"servers": {"docs": {"url": "https://own/"}, "mine": {"url": "https://own/"}}}
    )
    servers = lazy_servers("a", state, own)
    define(state, "docs", "https://shared/", node="b")
    found = servers.read().servers
    assert {name: one.spec.definition.url for name, one in found.items()} == {
        "docs": "https://shared/",
        "mine": "https://own/",
    }
    assert [one.source for one in found.values()] == ["cluster", "node"]
    remove(state, "docs")
    assert servers.read().servers["docs"].spec.definition.url == "https://own/"


async def test_secrets_that_cannot_be_opened_make_a_server_unusable_and_not_gone() -> None:
    state = world()
    define(state, "docs", "https://docs.example/", auth={"kind": "bearer", "token": "sesame-1"})
    state.nodes["c"].keyring = "another"
    async with on(state) as servers:
        refused = await refusal(servers, "docs")
    assert (refused.code, refused.status) == ("mcp_server_unusable", 502)
    assert servers.visible({}, context()) == []
    view = service_of("c", state).server("docs")
    assert "cannot be opened" in view.trouble


def test_a_file_that_is_wrong_names_what_is() -> None:
    from smg_node.config.schema.problems import ConfigurationError

    servers: LazyToolServers = lazy_servers("a", world(), '{"servers": {"x": {"url": "x"}}}')
    with pytest.raises(ConfigurationError) as caught:
        servers.check()
    assert "mcp.file" in str(caught.value)
    assert "servers.x" in str(caught.value)


async def test_what_is_defined_on_one_node_is_called_on_another_and_ends_when_it_is_removed() -> (
    None
):
    state = world()
    async with served("handshake") as server:
        async with on(state) as servers:
            define(state, "docs", server.url, node="a")
            found = await resolved(servers, "docs")
            async with asyncio.TaskGroup() as group:
                slow = group.create_task(servers.call(found, "slow", '{"seconds": 0.4}', context()))
                await until(lambda: server.book.methods["tools/call"] == 1)
                remove(state, "docs")
                refused = await call(servers, found, "echo")
                gone = await refusal(servers, "docs")
            assert isinstance(slow.result(), CallResult)
            assert isinstance(refused, Failure)
            assert (refused.kind, refused.sent) == (FailureKind.REFUSED, False)
            assert "taken away" in refused.message
            assert gone.code == "mcp_server_not_found"
            await until(lambda: server.book.deleted == 1)
        assert server.book.runs["slow"] == 1


async def test_a_request_goes_on_with_the_server_as_it_was() -> None:
    state = world()
    async with recorded() as first, recorded() as second:
        define(state, "docs", first.url)
        async with on(state) as servers:
            before = await resolved(servers, "docs")
            await call(servers, before)
            define(state, "docs", second.url)
            await call(servers, before)
            await call(servers, await resolved(servers, "docs"))
        assert (len(first.calls()), len(second.calls())) == (2, 1)
