"""Restricted keys, own roles and tenants' administrators at a real node, of one process and of several."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.http.chat_client import JSON, chat, port_of
from support.http.raw_http import Response, ask
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import Simulated, running_simulated

pytestmark = pytest.mark.integration

KEYS = "/v1/cluster/keys"
WAIT_S = 30.0
CONFIG = """
auth:
  roles:
    reader: [history, models]
models:
  sim:
    aliases: [small]
"""
SAID = {"role": "user", "content": "hi"}
BODIES: Mapping[str, dict[str, Any]] = {
    "/v1/chat/completions": {**chat("MODEL"), "max_tokens": 4},
    "/v1/completions": {"prompt": "hi", "max_tokens": 4},
    "/v1/messages": {"messages": [SAID], "max_tokens": 4},
    "/v1/messages/count_tokens": {"messages": [SAID]},
    "/v1/responses": {"input": "hi", "max_output_tokens": 4},
    "/v1/responses/input_tokens": {"input": "hi"},
    "/v1/interactions": {"input": "hi", "generation_config": {"max_output_tokens": 4}},
    "/v1/tokenize": {"prompt": "hi"},
    "/v1beta/models/MODEL:generateContent": {
        "contents": [{"parts": [{"text": "hi"}]}],
        "generationConfig": {"maxOutputTokens": 4},
    },
}
"""What is answered by a data process, and what by the control process."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    with running_simulated(tmp_path_factory.mktemp("engine"), "--model", "sim") as running:
        yield running


@pytest.fixture(params=["0", "2"])
def node(
    request: pytest.FixtureRequest, tmp_path: Path, engine: Simulated
) -> Iterator[RunningNode]:
    config = tmp_path / "node.yaml"
    config.write_text(CONFIG)
    flags = ("--processes", request.param, "--config", str(config))
    with running_node(tmp_path, workers=[f"grpc://{engine.address}"], flags=flags) as running:
        yield running
        assert "Traceback" not in running.process.said()


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}", **JSON}


@asynccontextmanager
async def keys(port: int, **wishes: Mapping[str, Any]) -> AsyncIterator[dict[str, str]]:
    """Keys as wished for, beside one of an administrator, known to all processes."""
    made: dict[str, str] = {}
    for name, wish in {"admin": {"role": "admin"}, **wishes}.items():
        sent = bearer(made["admin"]) if made else JSON
        answer = await ask(port, "POST", KEYS, dict(wish), sent)
        assert answer.status == 201, answer.body
        made[name] = answer.json()["key"]
    async with asyncio.timeout(WAIT_S):
        known = 0
        while known < 12:
            codes = [
                (await ask(port, "GET", "/v1/models", b"", bearer(key))).status
                for key in made.values()
            ]
            known = known + 1 if 401 not in codes else 0
    yield made


async def asked(port: int, key: str, path: str, model: str) -> Response:
    body = BODIES[path]
    if "MODEL" not in path:
        body = {**body, "model": model}
    return await ask(port, "POST", path.replace("MODEL", model), body, bearer(key))


def said(answer: Response) -> tuple[int, str]:
    return answer.status, answer.headers.get("x-smg-error-code", "")


async def test_restrictions_hold_by_every_api_in_whichever_process(node: RunningNode) -> None:
    port = port_of(node.url)
    wishes: dict[str, dict[str, Any]] = {
        "small": {"tenant": "a", "models": ["small"]},
        "away": {"tenant": "a", "networks": ["10.0.0.0/8"]},
        "here": {"tenant": "a", "networks": ["127.0.0.0/8"], "models": ["s*"]},
        "chat": {"tenant": "a", "routes": ["chat"]},
        "reader": {"tenant": "a", "role": "reader"},
    }
    async with keys(port, **wishes) as key:
        for path in BODIES:
            assert said(await asked(port, key["small"], path, "sim")) == (404, "model_not_found")
            for name, model in (("small", "small"), ("here", "sim")):
                allowed = await asked(port, key[name], path, model)
                assert allowed.status == 200, (path, name, allowed.body)
            assert said(await asked(port, key["away"], path, "sim")) == (403, "network_not_allowed")
            only = said(await asked(port, key["chat"], path, "sim"))
            expected = (200, "") if "chat" in path else (403, "route_not_allowed")
            assert only == expected, path
            refused = await asked(port, key["reader"], path, "sim")
            assert said(refused) == (403, "insufficient_permissions")
        for name, listed in (("small", ["small"]), ("here", ["sim", "small"])):
            rows = (await ask(port, "GET", "/v1/models", b"", bearer(key[name]))).json()["data"]
            assert [row["id"] for row in rows] == listed


async def test_a_tenant_s_administrator_has_its_own_tenant_at_a_real_node(
    node: RunningNode,
) -> None:
    port = port_of(node.url)
    async with keys(
        port,
        a={"tenant": "a", "role": "tenant_admin"},
        b={"tenant": "b", "role": "tenant_admin"},
    ) as key:
        made = await ask(port, "POST", KEYS, {"name": "web"}, bearer(key["a"]))
        assert (made.status, made.json()["tenant"]) == (201, "a")
        rows = (await ask(port, "GET", KEYS, b"", bearer(key["b"]))).json()["keys"]
        assert {row["tenant"] for row in rows} == {"b"}
        gone = await ask(port, "DELETE", f"{KEYS}/{made.json()['id']}", b"", bearer(key["b"]))
        assert said(gone) == (404, "key_not_found")
        refused = await ask(port, "GET", "/v1/cluster/audit", b"", bearer(key["a"]))
        assert said(refused) == (403, "insufficient_permissions")
