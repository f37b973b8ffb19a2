"""Servers that clients name by URL: which they may name, and which addresses are connected with."""

from typing import Any

import pytest
from msgspec.structs import replace

from smg_node.cluster.mcp.server_targets import Caller
from smg_node.mcp.failures import Failure, FailureKind
from smg_node.mcp.tools.tool_result import CallResult
from support.mcp.recording_server import recorded
from support.mcp.server_steps import call, define, on, refusal, resolved, world
from support.mcp.tool_desks import Maker, asked, context


async def test_urls_are_switched_off_unless_they_are_switched_on() -> None:
    async with on(world()) as servers:
        refused = await refusal(servers, "x", url="https://tools.example/", where="tools[1]")
    assert (refused.code, refused.where) == ("mcp_url_not_allowed", "tools[1]")
    assert "mcp.dynamic" in refused.message


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/mcp",
        "http://localhost:9/mcp",
        "http://LOCALHOST.:9/mcp",
        "http://[::1]:9/mcp",
        "http://[::ffff:10.0.0.1]/mcp",
        "http://169.254.169.254/latest",
        "http://10.0.0.1/mcp",
        "http://2130706433/mcp",
        "http://127.1/mcp",
    ],
)
async def test_a_url_to_no_public_address_is_refused_at_once(url: str) -> None:
    async with on(world(), maker=Maker("any"), dynamic=True) as servers:
        refused = await refusal(servers, "x", url=url)
    assert refused.code == "mcp_url_not_allowed"


async def test_only_listed_hosts_may_be_named_where_they_are_listed() -> None:
    maker = Maker("listed", ("127.0.0.0/8",))
    async with recorded() as server, on(world(), maker=maker, dynamic=True) as servers:
        refused = await refusal(servers, "x", url="https://tools.example/")
        found = await resolved(
            servers, "x", url=server.url, authorization="mine", headers={"X-A": "1"}
        )
        outcome = await call(servers, found)
        (told,) = server.calls()
    assert refused.code == "mcp_url_not_allowed"
    assert isinstance(outcome, CallResult)
    assert (found.defined, found.target.guarded) == (False, True)
    assert (told.headers["authorization"], told.headers["x-a"]) == ("Bearer mine", "1")


async def test_a_name_that_leads_to_the_loopback_is_not_connected_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import socket

    real = socket.getaddrinfo

    def lookup(host: Any, *rest: Any, **more: Any) -> Any:
        # As a name server of a stranger may answer, also differently each time.
        name = "127.0.0.1" if host == "rebound.example" else host
        return real(name, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    async with recorded() as server:
        url = server.url.replace("127.0.0.1", "rebound.example")
        async with on(world(), maker=Maker("any"), dynamic=True) as servers:
            found = await resolved(servers, "x", url=url)
            outcome = await call(servers, found)
            listed = await servers.list_tools(found)
        allowed = Maker("any", ("rebound.example",))
        async with on(world(), maker=allowed, dynamic=True) as servers:
            assert isinstance(
                await call(servers, await resolved(servers, "x", url=url)), CallResult
            )
        elsewhere = Maker("any", ("rebound.example:1",))
        async with on(world(), maker=elsewhere, dynamic=True) as servers:
            other_port = await call(servers, await resolved(servers, "x", url=url))
        assert len(server.calls()) == 1
    for one in (outcome, listed, other_port):
        assert isinstance(one, Failure)
        assert (one.kind, one.sent) == (FailureKind.LOST, False)
        assert "may not be called" in one.message


async def test_a_guarded_connection_is_shared_with_no_operators_one() -> None:
    state = world()
    async with recorded() as server:
        define(state, "docs", server.url)
        maker = Maker("listed", ("127.0.0.1",))
        async with on(state, maker=maker, dynamic=True) as servers:
            mine = await resolved(servers, "docs")
            given = await resolved(servers, "docs", url=server.url)
    assert mine.target.key != given.target.key


@pytest.mark.parametrize(
    "fields",
    [
        {"url": "ftp://x/"},
        {"url": "http://user:pass@x.example/"},
        {"url": "https://x.example/", "headers": {"cookie": "x"}},
        {"url": "https://x.example/", "headers": {"Mcp-Session-Id": "x"}},
        {"url": "https://x.example/", "authorization": "a\nb"},
    ],
)
async def test_what_cannot_be_called_names_its_place(fields: Any) -> None:
    async with on(world(), maker=Maker("any"), dynamic=True) as servers:
        refused = await refusal(servers, "x", where="tools[2]", **fields)
    assert refused.where == "tools[2]"
    assert "pass" not in refused.message.replace("password", "")


def test_a_request_that_stands_alone_has_a_session_that_no_other_request_can_name() -> None:
    one, other = (Caller(replace(context(request_id="r1"), token=token)) for token in "ab")
    assert one.thread != other.thread
    assert (
        Caller(replace(context(), token="a"), asked=asked("x", thread="t1")).thread == "thread t1"
    )


async def test_what_no_other_request_can_come_for_is_told_to_no_other_process() -> None:
    state = world()
    async with recorded() as server:
        define(state, "threads", server.url, session="thread")
        define(state, "shared", server.url)
        async with on(state) as servers:
            alone = await resolved(servers, "threads")
            of_thread = await resolved(servers, "threads", thread="t1")
            shared = await resolved(servers, "shared")
    found = [one.target.alone for one in (alone, of_thread, shared)]
    assert found == [True, False, False]
