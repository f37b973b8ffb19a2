"""Servers of tools as callers have them: who may see which, and what each server is told."""

from pathlib import Path

import pytest

from smg_node.cluster.mcp import server_secrets
from smg_node.mcp.failures import Failure, FailureKind
from smg_node.mcp.tool_servers import CallOptions
from smg_node.mcp.tools.tool_result import CallResult
from support.mcp.faulty_server import served
from support.mcp.recording_server import recorded
from support.mcp.server_steps import call, define, on, refusal, resolved, world
from support.mcp.tool_desks import Maker, context


async def test_to_others_a_server_is_not_there() -> None:
    state = world()
    define(state, "docs", "https://docs.example/", tenants=["acme"], builtin={"web_search": "find"})
    define(state, "open", "https://open.example/")
    async with on(state) as servers:
        mine = await resolved(servers, "docs", "acme")
        hidden = await refusal(servers, "docs", "other")
        unknown = await refusal(servers, "nope", "other")
        assert [one.label for one in servers.visible({}, context("acme"))] == ["docs", "open"]
        assert [one.label for one in servers.visible({}, context("other"))] == ["open"]
        found = servers.builtin("web_search", {}, context("acme"))
        assert found is not None
        assert (found[0].label, found[1]) == ("docs", "find")
        assert servers.builtin("web_search", {}, context("other")) is None
        assert servers.builtin("file_search", {}, context("acme")) is None
    assert mine.defined
    assert hidden.message.replace("docs", "nope") == unknown.message
    assert (hidden.code, hidden.status, hidden.where) == (unknown.code, 400, unknown.where)
    assert hidden.code == "mcp_server_not_found"


async def test_a_key_may_be_named_besides() -> None:
    state = world()
    define(state, "docs", "https://docs.example/", keys=["k1"], tenants=["acme"])
    async with on(state) as servers:
        assert servers.visible({}, context("acme", "k1"))
        assert not servers.visible({}, context("acme", "k2"))
        assert not servers.visible({}, context("other", "k1"))


async def test_a_label_may_stand_for_another_definition() -> None:
    state = world()
    define(state, "docs", "https://docs.example/")
    async with on(state) as servers:
        server = await resolved(servers, "mine", definition="docs")
        missing = await refusal(servers, "docs", definition="mine", where="tools[3]")
    assert (server.label, server.spec.name) == ("mine", "docs")
    assert (missing.where, missing.code) == ("tools[3]", "mcp_server_not_found")


async def test_tenants_share_no_connection() -> None:
    state = world()
    async with served("handshake") as server:
        define(state, "docs", server.url)
        async with on(state) as servers:
            for tenant in ("a", "b", "a"):
                found = await resolved(servers, "docs", tenant)
                assert isinstance(await call(servers, found, "echo"), CallResult)
        assert server.book.opened == 2


@pytest.mark.parametrize(("session", "opened"), [("shared", 1), ("thread", 2), ("call", 4)])
async def test_a_session_lasts_as_the_definition_says(session: str, opened: int) -> None:
    state = world()
    async with served("handshake") as server:
        define(state, "docs", server.url, session=session)
        async with on(state) as servers:
            for thread in ("t1", "t2", "t1", "t2"):
                found = await resolved(servers, "docs", thread=thread)
                assert isinstance(await call(servers, found, "echo"), CallResult)
        assert server.book.opened == opened


async def test_it_is_shown_what_its_definition_says_and_what_it_may_be_told() -> None:
    state = world()
    maker = Maker(environment={"DOCS_KEY": "key-from-the-environment"})
    head = {"x-team": "blue", "authorization": "Bearer ours", "cookie": "c", "x-other": "no"}
    async with recorded() as server:
        auth = {"kind": "headers", "headers": {"X-Api-Token": "env:DOCS_KEY", "x-two": "2"}}
        define(state, "docs", server.url, auth=auth, forward_headers=["X-Team", "x-none"])
        async with on(state, maker=maker) as servers:
            found = await resolved(servers, "docs", headers_of_head=head)
            assert isinstance(await call(servers, found), CallResult)
        (told,) = server.calls()
    assert (told.headers["x-api-token"], told.headers["x-two"]) == ("key-from-the-environment", "2")
    assert told.headers["x-team"] == "blue"
    assert not {"authorization", "cookie", "x-other", "x-none"} & told.headers.keys()


async def test_a_secret_in_a_file_is_read_where_it_is_needed(tmp_path: Path) -> None:
    state = world()
    file = tmp_path / "token"
    async with recorded() as server:
        auth = {"kind": "bearer", "token": f"file:{file}"}
        define(state, "docs", server.url, auth=auth)
        async with on(state) as servers:
            missing = await refusal(servers, "docs")
            file.write_text("from-a-file\n")
            await call(servers, await resolved(servers, "docs"))
        (told,) = server.calls()
    assert (missing.code, str(file) in missing.message) == ("mcp_secret", True)
    assert told.headers["authorization"] == "Bearer from-a-file"


async def test_the_requests_own_authorization_is_for_those_that_want_it() -> None:
    state = world()
    async with recorded() as server:
        define(state, "own", server.url, auth="client", forward_headers=["x-a"])
        define(state, "none", server.url)
        async with on(state) as servers:
            found = await resolved(servers, "own", authorization="mine", headers={"X-A": "1"})
            await call(servers, found)
            bare = await refusal(servers, "own", where="tools[0]")
            unwanted = await refusal(servers, "none", authorization="mine")
            header = await refusal(servers, "own", authorization="mine", headers={"x-b": "1"})
            assert [one.label for one in servers.visible({}, context())] == ["none"]
        (told,) = server.calls()
    assert (told.headers["authorization"], told.headers["x-a"]) == ("Bearer mine", "1")
    assert {bare.code, unwanted.code, header.code} == {"mcp_authorization"}
    assert bare.where == "tools[0]"
    assert "mine" not in unwanted.message + header.message


@pytest.mark.parametrize(
    ("way", "place"),
    [("meta", "meta"), ("header:X-Run", "header"), ("argument:run_key", "argument"), ("none", "")],
)
async def test_a_runs_key_is_told_as_the_definition_says(way: str, place: str) -> None:
    state = world()
    async with recorded() as server:
        define(state, "docs", server.url, idempotency=way)
        async with on(state) as servers:
            found = await resolved(servers, "docs")
            arguments = '{"n": 9007199254740993}'
            await servers.call(found, "find", arguments, context(), CallOptions(key="r1/c1"))
            await servers.call(found, "find", "", context(), CallOptions(key="r1/c2"))
        first, second = server.calls()
    assert first.params["arguments"]["n"] == 9007199254740993
    for told, key in ((first, "r1/c1"), (second, "r1/c2")):
        found_at = {
            "meta": told.params["_meta"].get("smg-node/idempotency-key"),
            "header": told.headers.get("x-run"),
            "argument": told.params["arguments"].get("run_key"),
        }
        assert {where: value for where, value in found_at.items() if value} == (
            {place: key} if place else {}
        )


async def test_a_caller_hears_when_bytes_may_leave_and_how_it_goes_on() -> None:
    state = world()
    begun: list[int] = []
    notes: list[tuple[str, float | None, float | None]] = []
    async with served("modern", answers="sse") as server:
        define(state, "docs", server.url)
        async with on(state) as servers:
            found = await resolved(servers, "docs")
            outcome = await servers.call(
                found,
                "slow",
                '{"seconds": 0.05, "steps": 2}',
                context(),
                CallOptions(
                    sending=lambda: begun.append(sum(server.book.methods.values())),
                    noted=lambda *note: notes.append(note),
                ),
            )
            bad = await servers.call(
                found, "slow", "[]", context(), CallOptions(sending=lambda: begun.append(-1))
            )
    assert isinstance(outcome, CallResult)
    assert isinstance(bad, Failure)
    assert begun == [1], "after the server was opened, once, and not for what is never sent"
    assert [note[1] for note in notes] == sorted(note[1] or 0.0 for note in notes)
    assert notes


async def test_a_request_whose_time_is_over_calls_nothing() -> None:
    state = world()
    async with served("modern") as server:
        define(state, "docs", server.url)
        async with on(state) as servers:
            found = await resolved(servers, "docs")
            late = await call(servers, found, "echo", total_s=0.0)
        assert server.book.runs["echo"] == 0
    assert isinstance(late, Failure)
    assert (late.kind, late.sent) == (FailureKind.TIMEOUT, False)


async def test_a_secret_that_went_away_while_its_token_was_refused_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_secrets, "KEPT_S", 0.0)
    state = world()
    file = tmp_path / "secret"
    file.write_text("the-clients-secret")

    class Nobody(set[str]):
        def __contains__(self, bearer: object) -> bool:
            file.unlink(missing_ok=True)
            return False

    async with recorded(Nobody()) as server:
        auth = {
            "kind": "client_credentials",
            "token_url": server.issuer,
            "client_id": "node",
            "client_secret": f"file:{file}",
        }
        define(state, "docs", server.url, auth=auth)
        async with on(state) as servers:
            found = await resolved(servers, "docs")
            outcome = await call(servers, found)
    assert isinstance(outcome, Failure)
    assert outcome.outcome == "auth"
