"""Signed tokens at the door: what answers say, what a kept connection saves, and the wait for an issuer's keys."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from smg_node.access.authenticators import Authenticators
from smg_node.access.identity import Identity, KeyAuthenticator
from smg_node.access.tokens.token_authenticator import TokenAuthenticator
from smg_node.access.tokens.verified_tokens import SECRET_BYTES, VerifiedTokens
from smg_node.system_clock import SystemClock
from support.access.signed_tokens import StaticKeys, claims, issuer, key_set, signing_key
from support.http.chat_client import CHAT, JSON, becomes, chat
from support.http.http_node import Node, node
from support.http.raw_http import Response, ask, connect

WAIT_S = 30.0
KEY, NEW = signing_key("ES256", "one"), signing_key("ES256", "new")


class World:
    """A node that takes tokens of one issuer."""

    def __init__(self, served: Node, keys: StaticKeys, asked: list[str]) -> None:
        self.served = served
        self.keys = keys
        self.asked = asked
        """Tokens that were judged, one entry for each time."""

    async def get(self, token: str, path: str = "/v1/models") -> Response:
        """Ask with a token."""
        return await ask(self.served.port, "GET", path, b"", bearer(token))


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def token(key: Any = KEY, **changed: Any) -> str:
    now_s = SystemClock().now_ms() // 1000
    return str(key.token(claims(**{"iat": now_s - 5, "exp": now_s + 600, **changed})))


@asynccontextmanager
async def world(*, settled: bool = True) -> AsyncIterator[World]:
    keys, asked = StaticKeys(corp=key_set(KEY)), list[str]()
    verified = VerifiedTokens(b"s" * SECRET_BYTES)

    class Counted(TokenAuthenticator):
        """Counts what it is asked."""

        def identify(self, token: str) -> Identity:
            asked.append(token)
            return super().identify(token)

    tokens = Counted((issuer(),), keys, verified, SystemClock().now_ms)
    async with node(
        authenticate=lambda own: Authenticators(KeyAuthenticator(own), tokens)
    ) as served:
        yield World(served, keys, asked)


async def test_answers_say_what_is_wrong_with_a_token() -> None:
    async with world() as one:
        assert (await one.get(token())).status == 200
        expired = await one.get(token(exp=1))
        assert expired.status == 401
        assert expired.headers["x-smg-error-code"] == "expired_token"
        challenge = 'Bearer error="invalid_token", error_description="expired"'
        assert expired.headers["www-authenticate"] == challenge
        assert expired.error()["code"] == "expired_token"
        key = await one.get("smg-one-wrong")
        assert (key.status, key.headers["www-authenticate"]) == (401, "Bearer")
        worthless = await one.get(token(azp="a b"))
        assert worthless.status == 403
        assert worthless.headers["www-authenticate"] == 'Bearer error="insufficient_scope"'
        low = await one.get(token(), "/v1/cluster/keys")
        assert low.status == 403
        assert low.headers["www-authenticate"] == 'Bearer error="insufficient_scope"'


async def test_the_next_request_of_a_connection_does_not_look_at_the_token_again() -> None:
    async with world() as one, connect(one.served.port) as client:
        headers, body = {**bearer(token()), **JSON}, json.dumps(chat("sim")).encode()
        for _ in range(3):
            await client.send("POST", CHAT, body, headers)
            response = await client.response()
            assert response.status == 200, response.body
        assert len(one.asked) == 1
        one.keys.put("corp", key_set(NEW))
        await client.send("POST", CHAT, body, headers)
        refused = await client.response()
        assert (refused.status, refused.headers["x-smg-error-code"]) == (401, "unknown_key")


async def test_a_request_waits_for_the_keys_and_is_judged_once_more() -> None:
    async with world() as one:
        one.keys.fetching = ready = asyncio.get_running_loop().create_future()
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            waiting = [group.create_task(one.get(token(NEW))) for _ in range(3)]
            await becomes(lambda: len(one.asked) == 3, WAIT_S, "judged once")
            # Others do not wait meanwhile.
            assert (await one.get(token())).status == 200
            one.keys.put("corp", key_set(KEY, NEW))
            ready.set_result(None)
        assert [task.result().status for task in waiting] == [200, 200, 200]
        assert len(one.asked) == 7


async def test_a_key_that_did_not_come_is_unknown() -> None:
    async with world() as one:
        one.keys.fetching = ready = asyncio.get_running_loop().create_future()
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            waiting = group.create_task(one.get(token(NEW)))
            await becomes(lambda: len(one.asked) == 1, WAIT_S, "judged once")
            one.keys.fetching = None
            ready.set_result(None)
        assert (waiting.result().status, waiting.result().error()["code"]) == (401, "unknown_key")


async def test_a_fetch_that_takes_too_long_is_no_fault_of_the_token() -> None:
    async with world() as one:
        one.keys.fetching = asyncio.get_running_loop().create_future()
        refused = await one.get(token(NEW))
        assert (refused.status, refused.headers["retry-after"]) == (503, "2")
        assert refused.error()["code"] == "issuer_unreachable"
        assert "www-authenticate" not in refused.headers
        assert not one.keys.fetching.cancelled()


async def test_more_than_sixty_four_do_not_wait() -> None:
    async with world() as one:
        one.keys.fetching = ready = asyncio.get_running_loop().create_future()
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            tasks = [group.create_task(one.get(token(NEW))) for _ in range(80)]
            await becomes(lambda: sum(task.done() for task in tasks) == 16, WAIT_S, "refused")
            early = [task.result().status for task in tasks if task.done()]
            one.keys.put("corp", key_set(NEW))
            ready.set_result(None)
        assert set(early) == {503}
        assert len(early) == 16
        assert [task.result().status for task in tasks].count(200) == 64


@pytest.mark.parametrize("name", ["authorization", "x-api-key", "x-goog-api-key"])
async def test_a_token_may_come_under_each_name_of_a_key(name: str) -> None:
    async with world() as one:
        sent = token()
        headers = {name: f"Bearer {sent}" if name == "authorization" else sent}
        assert (await ask(one.served.port, "GET", "/v1/models", b"", headers)).status == 200


async def test_the_access_log_shows_no_token() -> None:
    async with world() as one:
        sent = token()
        await one.get(sent)
        await one.get(token(exp=1))
        said = str(one.served.access.lines)
        assert all(part not in said for part in sent.split("."))
