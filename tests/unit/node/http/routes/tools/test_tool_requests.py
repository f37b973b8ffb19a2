"""What the node's own MCP server answers, with a counting server behind it."""

import json
from typing import Any

import msgspec
import pytest

from smg_mesh.io.security.carried_secrets import CarriedSecrets
from smg_node.mcp.catalog.pins import pin_of
from smg_node.mcp.server_spec import ToolRule
from smg_node.mcp.serving.call_state import APPROVAL
from support.http.http_node import node
from support.mcp.client_calls import new, old
from support.mcp.faulty_server import served
from support.mcp.pooled_tools import spec, tools_of
from support.mcp.serving_node import ACCEPTED, ASKABLE, TOOLS, keys_of, text, world


async def test_tools_are_listed_by_server_and_all_together() -> None:
    async with world(page=3) as (at, _, _tools):
        all_ = (await old(at.port, "tools/list")).json()["result"]
        one = (await new(at.port, "tools/list", path="/mcp/s")).json()["result"]
    assert [tool["name"] for tool in all_["tools"]] == [f"s__{name}" for name in TOOLS]
    assert "ttlMs" not in all_
    assert [tool["name"] for tool in one["tools"]] == list(TOOLS)
    assert (one["resultType"], one["cacheScope"]) == ("complete", "private")
    assert 0 < one["ttlMs"] <= 60_000
    add = one["tools"][0]
    assert add["description"] == "Adds."
    assert add["annotations"] == {"readOnlyHint": True}
    assert add["inputSchema"]["properties"]["a"] == {"type": "number"}


async def test_a_server_that_cannot_be_listed_leaves_the_others_in_the_list() -> None:
    async with world() as (at, _, tools):
        tools.specs.append(spec("away", "http://127.0.0.1:9/mcp"))
        result = (await new(at.port, "tools/list")).json()["result"]
        assert [tool["name"] for tool in result["tools"]] == [f"s__{name}" for name in TOOLS]
        assert result["ttlMs"] == 0
        alone = await new(at.port, "tools/list", path="/mcp/away")
        assert (alone.status, alone.error()["code"]) == (200, -32603)
        call = await new(at.port, "tools/call", {"name": "away__x"})
    assert call.json()["result"]["isError"] is True


@pytest.mark.parametrize("cursor", ["nonsense", 3, "YWZ0ZXI"])
async def test_cursors_of_others_are_refused(cursor: Any) -> None:
    async with world() as (at, _, _tools):
        response = await new(at.port, "tools/list", {"cursor": cursor})
    assert (response.status, response.error()["code"]) == (400, -32602)


async def test_a_call_runs_once_and_comes_back_as_the_server_said_it() -> None:
    async with world() as (at, server, tools):
        arguments = {"a": 9007199254740993, "b": 0}
        params = {"name": "s__add", "arguments": arguments}
        first = await old(at.port, "tools/call", params)
        second = await new(at.port, "tools/call", {**params, "name": "add"}, path="/mcp/s")
        assert server.book.runs["add"] == 2
        sent = tools.calls[0][2]
    assert json.loads(sent) == arguments
    assert first.json()["result"]["structuredContent"] == {"sum": 9007199254740993}
    result = second.json()["result"]
    assert result.pop("resultType") == "complete"
    assert result == first.json()["result"]
    keys = {call[3].key for call in tools.calls}
    assert len(keys) == 2


@pytest.mark.parametrize("path", ["/mcp", "/mcp/s"])
async def test_unknown_tools_and_bad_arguments(path: str) -> None:
    async with world() as (at, server, _tools):
        for params in (
            {"name": "nothing"},
            {"name": "s__nothing"},
            {"name": ""},
            {"name": 3},
            {},
            {"name": "echo" if path == "/mcp/s" else "s__echo", "arguments": [1]},
        ):
            first = await old(at.port, "tools/call", params, path=path)
            assert (first.status, first.error()["code"]) == (200, -32602), params
        assert not server.book.runs
        late = await new(at.port, "tools/call", {"name": "nothing"}, path=path)
    assert (late.status, late.error()["code"]) == (400, -32602)


async def test_a_tool_that_fails_and_a_server_that_fails_are_results() -> None:
    async with world("status:code=503,tool=echo", "error:code=-32042,tool=add") as (at, _, _t):
        failed = await new(at.port, "tools/call", {"name": "s__fail"})
        away = await new(at.port, "tools/call", {"name": "s__echo"})
        refused = await new(at.port, "tools/call", {"name": "s__add"})
    assert failed.json()["result"]["isError"] is True
    assert text(failed) == "the tool says that it failed"
    assert text(away) == "tool failed: the server answered 503 Service Unavailable"
    assert refused.error() == {"code": -32042, "message": "on purpose"}


async def test_mirrored_arguments_are_checked_and_passed_on() -> None:
    async with world() as (at, server, _tools):
        params = {"name": "s__routed", "arguments": {"region": "eu"}}
        missing = await new(at.port, "tools/call", params)
        wrong = await new(at.port, "tools/call", params, headers={"mcp-param-region": "us"})
        good = await new(at.port, "tools/call", params, headers={"mcp-param-region": "eu"})
        before = await old(at.port, "tools/call", params)
        assert server.book.runs["routed"] == 2
    for response in (missing, wrong):
        assert (response.status, response.error()["code"]) == (400, -32020)
    assert (good.status, before.status) == (200, 200)


async def test_an_operator_decides_what_is_shown_and_run() -> None:
    rules = {"echo": ToolRule(hidden=True), "write": ToolRule(approval="deny")}
    async with world(tools=rules) as (at, server, _tools):
        listed = (await old(at.port, "tools/list", path="/mcp/s")).json()["result"]["tools"]
        hidden = await old(at.port, "tools/call", {"name": "s__echo"})
        denied = await old(at.port, "tools/call", {"name": "s__write"})
        assert not server.book.runs
    assert not {"echo", "write"} & {tool["name"] for tool in listed}
    assert hidden.error()["code"] == -32602
    assert denied.json()["result"]["isError"] is True
    assert text(denied) == "not run: s__write is not allowed (tools.write.approval)"


async def test_a_tool_that_is_not_as_it_was_pinned_is_asked_about() -> None:
    async with world(pin=True) as (at, server, tools):
        listed = (await old(at.port, "tools/list", path="/mcp/s")).json()["result"]["tools"]
        params: dict[str, Any] = {"name": "echo", "arguments": {"text": "x"}}
        asked = await new(at.port, "tools/call", params, path="/mcp/s", capabilities=ASKABLE)
        refused = await old(at.port, "tools/call", params, path="/mcp/s")
        (echo,) = [one for one in listed if one["name"] == "echo"]
        pin = pin_of("echo", echo["description"], echo["inputSchema"], echo["annotations"])
        tools.specs[0] = msgspec.structs.replace(tools.specs[0], pinned=(pin,))
        ran = await old(at.port, "tools/call", params, path="/mcp/s")
        assert server.book.runs == {"echo": 1}
    assert {tool["name"] for tool in listed} == set(TOOLS)
    assert asked.json()["result"]["resultType"] == "input_required"
    assert text(refused).startswith("not run: ")
    assert text(ran) == "x"


async def test_fixed_arguments_are_the_operators() -> None:
    rules = {"echo": ToolRule(fixed={"text": "fixed"})}
    async with world(tools=rules) as (at, _, _tools):
        listed = (await old(at.port, "tools/list", path="/mcp/s")).json()["result"]["tools"]
        (echo,) = [tool for tool in listed if tool["name"] == "echo"]
        params = {"name": "s__echo", "arguments": {"text": "mine"}}
        answer = await old(at.port, "tools/call", params)
    assert echo["inputSchema"]["properties"] == {}
    assert text(answer) == "fixed"


async def test_a_person_is_asked_and_the_call_runs_once_allowed() -> None:
    async with world(trust="untrusted") as (at, server, _tools):
        params: dict[str, Any] = {"name": "s__echo", "arguments": {"text": "x"}}
        asked = await new(at.port, "tools/call", params, capabilities=ASKABLE)
        result = asked.json()["result"]
        assert result["resultType"] == "input_required"
        assert list(result["inputRequests"]) == [APPROVAL]
        assert not server.book.runs
        again = {**params, "requestState": result["requestState"], "inputResponses": ACCEPTED}
        done = await new(at.port, "tools/call", again, capabilities=ASKABLE)
        assert text(done) == "x"
        assert server.book.runs["echo"] == 1
        declined = {**again, "inputResponses": {APPROVAL: {"action": "decline"}}}
        refused = await new(at.port, "tools/call", declined, capabilities=ASKABLE)
        assert text(refused) == "not run: the call was not approved"
        other = {**again, "arguments": {"text": "y"}}
        response = await new(at.port, "tools/call", other, capabilities=ASKABLE)
        assert (response.status, response.error()["code"]) == (400, -32602)
        forged = {**params, "inputResponses": ACCEPTED}
        response = await new(at.port, "tools/call", forged, capabilities=ASKABLE)
        assert response.json()["result"]["resultType"] == "input_required"
        assert server.book.runs["echo"] == 1


async def test_clients_that_cannot_ask_a_person_are_told() -> None:
    async with world(trust="untrusted") as (at, server, _tools):
        new_ = await new(at.port, "tools/call", {"name": "s__echo"})
        old_ = await old(at.port, "tools/call", {"name": "s__echo"})
        assert not server.book.runs
    assert (new_.status, new_.error()["code"]) == (400, -32021)
    assert new_.error()["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}
    assert old_.json()["result"]["isError"] is True
    assert text(old_).startswith("not run: ")


@pytest.mark.parametrize("trust", ["trusted", "untrusted"])
async def test_what_a_server_asks_reaches_the_client_and_its_state_is_wrapped(trust: str) -> None:
    async with world(trust=trust) as (at, server, _tools):
        params: dict[str, Any] = {"name": "s__asks", "arguments": {"text": "x"}}
        asked = await new(at.port, "tools/call", params, capabilities=ASKABLE)
        result = asked.json()["result"]
        if trust == "untrusted":
            again = {**params, "requestState": result["requestState"], "inputResponses": ACCEPTED}
            asked = await new(at.port, "tools/call", again, capabilities=ASKABLE)
            result = asked.json()["result"]
        assert result["inputRequests"]["sure"]["method"] == "elicitation/create"
        assert "state of the server" not in result["requestState"]
        again = {
            **params,
            "requestState": result["requestState"],
            "inputResponses": {"sure": {"action": "accept", "content": {}}},
        }
        done = await new(at.port, "tools/call", again, capabilities=ASKABLE)
        assert text(done) == "the person said accept"
        assert server.book.runs["asks"] == 1
        broken = {**again, "requestState": result["requestState"] + "-TAMPERED"}
        response = await new(at.port, "tools/call", broken, capabilities=ASKABLE)
        assert (response.status, response.error()["code"]) == (400, -32602)


async def test_what_a_server_asks_a_client_that_can_answer_nothing_is_declined() -> None:
    async with world() as (at, _, _tools):
        done = await new(at.port, "tools/call", {"name": "s__asks"})
        before = await old(at.port, "tools/call", {"name": "s__asks"})
    assert text(done) == text(before) == "the person said decline"


async def test_a_tenant_sees_nothing_of_another() -> None:
    async with (
        served() as server,
        tools_of(
            spec("a", server.url, tenants=("acme",)),
            spec("b", server.url, tenants=("other",)),
            spec("quiet", server.url, internal=True),
        ) as tools,
        node() as at,
    ):
        at.parts.offered_tools = lambda: tools
        (acme,) = await keys_of(at, "acme")
        listed = (await old(at.port, "tools/list", headers=acme)).json()["result"]["tools"]
        assert {tool["name"].partition("__")[0] for tool in listed} == {"a"}
        unknown = await old(at.port, "tools/list", path="/mcp/nothing", headers=acme)
        for name in ("b", "quiet"):
            foreign = await old(at.port, "tools/list", path=f"/mcp/{name}", headers=acme)
            assert foreign.status == unknown.status == 404
            assert foreign.body.replace(name.encode(), b"nothing") == unknown.body
            call = await old(at.port, "tools/call", {"name": f"{name}__echo"}, headers=acme)
            none = await old(at.port, "tools/call", {"name": "nothing__echo"}, headers=acme)
            assert call.body.replace(name.encode(), b"nothing") == none.body
        nobody = await old(at.port, "tools/list")
        assert nobody.status == 401
        assert nobody.headers["www-authenticate"] == "Bearer"
        assert not server.book.runs


async def test_an_approval_of_one_caller_is_of_no_use_to_another() -> None:
    async with world(trust="untrusted") as (at, server, _tools):
        keys = await keys_of(at, "acme", "acme", "other")
        params: dict[str, Any] = {"name": "s__echo", "arguments": {"text": "x"}}
        asked = await new(at.port, "tools/call", params, capabilities=ASKABLE, headers=keys[0])
        state = asked.json()["result"]["requestState"]
        again = {**params, "requestState": state, "inputResponses": ACCEPTED}
        for key in keys[1:]:
            stolen = await new(at.port, "tools/call", again, capabilities=ASKABLE, headers=key)
            assert stolen.error()["code"] == -32602
        assert not server.book.runs


async def test_any_node_goes_on_where_another_asked() -> None:
    keys = CarriedSecrets(lambda: (bytes(range(4 + 32)),))
    async with world(trust="untrusted") as (a, server, tools), node() as b, node() as c:
        for at in (b, c):
            at.parts.offered_tools = lambda: tools
        a.parts.vault = b.parts.vault = keys
        params: dict[str, Any] = {"name": "s__asks", "arguments": {"text": "x"}}
        asked = await new(a.port, "tools/call", params, capabilities=ASKABLE)
        state = asked.json()["result"]["requestState"]
        again = {**params, "requestState": state, "inputResponses": ACCEPTED}
        asked = await new(b.port, "tools/call", again, capabilities=ASKABLE)
        state = asked.json()["result"]["requestState"]
        sure = {"sure": {"action": "accept", "content": {}}}
        last = {**params, "requestState": state, "inputResponses": sure}
        stranger = await new(c.port, "tools/call", last, capabilities=ASKABLE)
        assert stranger.error()["code"] == -32602
        done = await new(a.port, "tools/call", last, capabilities=ASKABLE)
        assert text(done) == "the person said accept"
        assert server.book.runs == {"asks": 1}


async def test_a_state_that_no_client_should_carry_fails_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("smg_node.http.routes.tools.tool_requests.STATE_CHARACTERS_MAX", 5)
    async with world() as (at, _, _tools):
        params = {"name": "s__asks", "arguments": {"text": "x"}}
        asked = await new(at.port, "tools/call", params, capabilities=ASKABLE)
    assert asked.json()["result"]["isError"] is True
    assert text(asked) == "tool failed: the server's state has more than 5 characters"
