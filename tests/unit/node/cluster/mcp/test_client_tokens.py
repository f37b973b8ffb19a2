"""Tokens of client credentials: one for many calls, made anew in time or where it is refused."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.cluster.mcp import client_tokens
from smg_node.cluster.mcp.client_tokens import LIFE_S, ClientTokens, read_answer
from smg_node.mcp.failures import Failure, FailureKind
from smg_node.mcp.server_spec import TokenIssuer
from smg_node.mcp.tools.tool import ToolList
from smg_node.mcp.tools.tool_result import CallResult
from support.mcp.recording_server import Recorder, recorded
from support.mcp.server_steps import call, define, on, resolved, world


def issued(server: Recorder, **more: Any) -> dict[str, Any]:
    return {
        "kind": "client_credentials",
        "token_url": server.issuer,
        "client_id": "node",
        "client_secret": "the-clients-secret",
        "scope": "tools",
        **more,
    }


async def test_one_token_serves_many_calls_and_one_that_is_refused_is_made_anew() -> None:
    state = world()
    async with recorded(set()) as server:
        define(state, "docs", server.url, auth=issued(server))
        async with on(state) as servers:
            found = await resolved(servers, "docs")
            outcomes = await asyncio.gather(*(call(servers, found) for _ in range(5)))
            assert all(isinstance(one, CallResult) for one in outcomes)
            assert len(server.issued) == 1
            assert server.tokens is not None
            server.tokens.clear()
            assert isinstance(await call(servers, found), CallResult)
            assert isinstance(await servers.list_tools(found), ToolList)
        assert len(server.issued) == 2
    assert server.issued[0]["basic"] == "node:the-clients-secret"
    assert server.issued[0]["scope"] == "tools"
    assert server.calls()[-1].headers["authorization"] == "Bearer token-2"


async def test_an_issuer_that_refuses_is_a_failure_of_the_call_without_any_secret() -> None:
    state = world()
    async with recorded(set()) as server:
        server.issuer_status = 401
        define(state, "docs", server.url, auth=issued(server, in_body=True))
        async with on(state) as servers:
            found = await resolved(servers, "docs")
            outcomes = [await call(servers, found) for _ in range(3)]
    for outcome in outcomes:
        assert isinstance(outcome, Failure)
        assert (outcome.outcome, outcome.sent) == ("auth", False)
        assert "invalid_client" in outcome.message
        assert "secret" not in outcome.message
    assert not server.calls()
    assert len(server.issued) == 1, "an issuer that failed is left alone for a moment"
    assert server.issued[0]["client_secret"] == "the-clients-secret"


# ── Their life ───────────────────────────────────────────────────────────────


class Issuer:
    """An issuer that answers as a test says, and a clock."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.asked = 0
        self.status = 200
        self.answer: Any = {"token_type": "bearer", "expires_in": 100}
        self.error: Exception | None = None

    async def fetch(self, url: str, headers: Any, body: bytes) -> tuple[int, bytes]:
        self.asked += 1
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        answer = self.answer
        if isinstance(answer, dict):
            answer = json.dumps({"access_token": f"t{self.asked}", **answer}).encode()
        return self.status, answer


AT = TokenIssuer("https://issuer.example/token", "node")


def keeper() -> tuple[Issuer, ClientTokens]:
    issuer = Issuer()
    return issuer, ClientTokens(issuer.fetch, lambda: issuer.now_s)


async def test_a_token_is_made_anew_at_four_fifths_of_its_life_and_once_for_all() -> None:
    issuer, tokens = keeper()
    assert set(await asyncio.gather(*(tokens.token(AT, "s") for _ in range(9)))) == {"t1"}
    issuer.now_s += 79.9
    assert await tokens.token(AT, "s") == "t1"
    issuer.now_s += 0.2
    assert set(await asyncio.gather(*(tokens.token(AT, "s") for _ in range(9)))) == {"t2"}
    assert await tokens.token(AT, "another") == "t3"


async def test_while_the_issuer_is_away_a_token_serves_as_long_as_it_lives() -> None:
    issuer, tokens = keeper()
    await tokens.token(AT, "s")
    issuer.error = OSError("no")
    issuer.now_s += 90
    assert await tokens.token(AT, "s") == "t1"
    assert (await tokens.token(AT, "s"), issuer.asked) == ("t1", 2)
    issuer.now_s += 11
    lost = await tokens.token(AT, "s")
    assert isinstance(lost, Failure)
    assert (lost.kind, lost.sent) == (FailureKind.LOST, False)
    issuer.error = None
    issuer.now_s += 6
    assert await tokens.token(AT, "s") == "t4"


async def test_a_token_that_was_exchanged_already_is_not_forgotten_twice() -> None:
    _, tokens = keeper()
    assert await tokens.token(AT, "s") == "t1"
    tokens.forget(AT, "s", "t1")
    assert await tokens.token(AT, "s") == "t2"
    tokens.forget(AT, "s", "t1")
    assert await tokens.token(AT, "s") == "t2"


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (200, b"nonsense"),
        (200, b"[]"),
        (200, {"access_token": ""}),
        (200, {"access_token": "a b"}),
        (200, {"access_token": "x\ny"}),
        (200, {"token_type": "mac"}),
        (400, {"error": "invalid_scope"}),
        (302, b""),
        (500, b"<html>"),
    ],
)
async def test_an_answer_without_a_token_is_a_failure(status: int, answer: Any) -> None:
    issuer, tokens = keeper()
    issuer.status, issuer.answer = status, answer
    failed = await tokens.token(AT, "s")
    assert isinstance(failed, Failure)
    assert (failed.outcome, failed.sent) == ("auth", False)
    assert "<html>" not in failed.message


@pytest.mark.parametrize("life", [None, "soon", 0, -5, [1]])
async def test_a_life_that_nobody_says_is_short(life: Any) -> None:
    issuer, tokens = keeper()
    issuer.answer = {"token_type": "Bearer", "expires_in": life}
    assert await tokens.token(AT, "s") == "t1"
    issuer.now_s += 241
    assert await tokens.token(AT, "s") == "t2"


@given(st.binary(max_size=200), st.integers(100, 599))
def test_any_answer_is_a_token_or_a_failure(body: bytes, status: int) -> None:
    read = read_answer(status, body)
    assert isinstance(read, Failure) or read[1] > 0


@pytest.mark.parametrize("expires_in", [b"1" + b"0" * 400, b"-1", b"null", b'"soon"', b"[]"])
def test_a_life_that_is_none_is_taken_for_a_short_one(expires_in: bytes) -> None:
    said = b'{"access_token": "t", "expires_in": %b}' % expires_in
    assert read_answer(200, said) == ("t", LIFE_S)


async def test_what_is_known_of_issuers_that_fail_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_tokens, "TOKENS_MAX", 3)
    issuer, tokens = keeper()
    issuer.error = OSError("no")
    for secret in "abcde":
        assert isinstance(await tokens.token(AT, secret), Failure)
    for secret in "edc":
        assert isinstance(await tokens.token(AT, secret), Failure)
    assert issuer.asked == 5
    await tokens.token(AT, "a")
    assert issuer.asked == 6
