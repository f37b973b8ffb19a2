"""Restricted keys over HTTP: models, networks, APIs and urgency, on every API that asks for a model."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from smg_node.access.restrictions import APIS
from smg_node.http.middleware.restricted_requests import api_of
from smg_node.http.ports.keys import KEYS_FORM, KEYS_META
from smg_node.http.route_table import ROUTES
from support.http.history_routes import Here
from support.http.http_node import Node, chat, node
from support.http.raw_http import Response, ask

KEYS = "/v1/cluster/keys"
SAID = {"role": "user", "content": "hi"}
ASKED: Mapping[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", {"messages": [SAID]}),
    "completions": ("/v1/completions", {"prompt": "hi"}),
    "messages": ("/v1/messages", {"messages": [SAID], "max_tokens": 5}),
    "counted messages": ("/v1/messages/count_tokens", {"messages": [SAID]}),
    "responses": ("/v1/responses", {"input": "hi"}),
    "counted responses": ("/v1/responses/input_tokens", {"input": "hi"}),
    "compacted": ("/v1/responses/compact", {"input": "hi"}),
    "interactions": ("/v1/interactions", {"input": "hi"}),
    "gemini": ("/v1beta/models/MODEL:generateContent", {"contents": [{"parts": [{"text": "a"}]}]}),
    "gemini stream": (
        "/v1beta/models/MODEL:streamGenerateContent",
        {"contents": [{"parts": [{"text": "a"}]}]},
    ),
    "counted gemini": (
        "/v1beta/models/MODEL:countTokens",
        {"contents": [{"parts": [{"text": "a"}]}]},
    ),
    "embeddings": ("/v1/embeddings", {"input": "hi"}),
    "rerank": ("/v1/rerank", {"query": "q", "documents": ["a"]}),
    "classify": ("/v1/classify", {"input": "hi"}),
    "tokenize": ("/v1/tokenize", {"prompt": "hi"}),
    "detokenize": ("/v1/detokenize", {"tokens": [1]}),
}


@asynccontextmanager
async def closed() -> AsyncIterator[tuple[Node, str]]:
    """A node with an admin key, which is yielded as well."""
    async with node(history=Here()) as served:
        made = await ask(served.port, "POST", KEYS, {"role": "admin"})
        yield served, made.json()["key"]


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


async def made(served: Node, admin: str, **wish: Any) -> str:
    answer = await ask(served.port, "POST", KEYS, {"tenant": "acme", **wish}, bearer(admin))
    assert answer.status == 201, answer.body
    return str(answer.json()["key"])


async def asked(served: Node, key: str, api: str, model: str) -> Response:
    path, body = ASKED[api]
    if "MODEL" not in path:
        body = {"model": model, **body}
    return await ask(served.port, "POST", path.replace("MODEL", model), body, bearer(key))


def code_of(answer: Response) -> str:
    return answer.headers.get("x-smg-error-code", "")


@pytest.mark.parametrize("api", ASKED)
async def test_a_model_outside_does_not_exist_for_a_key_by_whichever_api(api: str) -> None:
    async with closed() as (served, admin):
        key = await made(served, admin, models=["ali*"])
        refused = await asked(served, key, api, "m")
        assert (refused.status, code_of(refused)) == (404, "model_not_found")
        assert b"alias" not in refused.body
        assert b"big-model" not in refused.body
        # The same model under an allowed name goes as far as for a key without restrictions.
        free = await made(served, admin)
        allowed, plain = [await asked(served, one, api, "alias") for one in (key, free)]
        assert allowed.status == plain.status
        if plain.status == 404:
            assert code_of(plain) == "model_not_found"


async def test_what_does_not_exist_is_told_in_the_same_words_and_without_others_names() -> None:
    async with closed() as (served, admin):
        key = await made(served, admin, models=["none-*", "alias"])
        for path in ("/v1/models/none-such", "/v1/models/m", "/v1beta/models/m"):
            answer = await ask(served.port, "GET", path, b"", bearer(key))
            assert answer.status == 404
            assert b"GET /v1/models lists those that do" in answer.body
            assert b"big-model" not in answer.body


async def test_lists_of_models_have_those_alone_that_may_be_asked_for() -> None:
    async with closed() as (served, admin):
        key = await made(served, admin, models=["alias", "org/*"])
        listed = await ask(served.port, "GET", "/v1/models", b"", bearer(key))
        assert [row["id"] for row in listed.json()["data"]] == ["alias", "org/big-model"]
        assert b'"m"' not in listed.body
        google = await ask(served.port, "GET", "/v1beta/models", b"", bearer(key))
        assert [row["name"] for row in google.json()["models"]] == [
            "models/alias",
            "models/org/big-model",
        ]
        vendor = {**bearer(key), "anthropic-version": "2023-06-01"}
        page = await ask(served.port, "GET", "/v1/models", b"", vendor)
        assert [row["id"] for row in page.json()["data"]] == ["alias", "org/big-model"]
        one = await ask(served.port, "GET", "/v1/models/alias", b"", bearer(key))
        assert (one.status, one.json()["id"]) == (200, "alias")
        assert b'"m"' not in one.body


async def test_a_key_is_good_from_its_networks_alone() -> None:
    async with closed() as (served, admin):
        here = await made(served, admin, networks=["127.0.0.0/8", "::1/128"])
        away = await made(served, admin, networks=["10.0.0.0/8"])
        assert (await asked(served, here, "chat", "m")).status == 200
        for path in ("/v1/models", "/v1/usage"):
            refused = await ask(served.port, "GET", path, b"", bearer(away))
            assert (refused.status, code_of(refused)) == (403, "network_not_allowed")
        boss = await made(served, admin, role="admin", networks=["10.0.0.0/8"])
        refused = await ask(served.port, "GET", "/workers", b"", bearer(boss))
        assert (refused.status, code_of(refused)) == (403, "network_not_allowed")
        assert (await ask(served.port, "GET", "/liveness", b"", bearer(away))).status == 200


async def test_a_key_is_good_for_its_apis_and_for_what_it_may_know_of_itself() -> None:
    async with closed() as (served, admin):
        key = await made(served, admin, routes=["chat", "responses"])
        assert (await asked(served, key, "chat", "m")).status == 200
        assert (await asked(served, key, "responses", "m")).status == 200
        for path in ("/v1/models", "/v1/usage"):
            assert (await ask(served.port, "GET", path, b"", bearer(key))).status == 200
        for api in ("messages", "gemini", "tokenize", "embeddings", "completions"):
            refused = await asked(served, key, api, "m")
            assert (refused.status, code_of(refused)) == (403, "route_not_allowed"), api
        boss = await made(served, admin, role="admin", routes=["chat"])
        refused = await ask(served.port, "GET", "/workers", b"", bearer(boss))
        assert (refused.status, code_of(refused)) == (403, "route_not_allowed")


def test_every_route_is_of_an_api_that_can_be_named_or_of_all() -> None:
    named = {api_of(route) for route in ROUTES}
    assert named == {*APIS, ""}
    free = {route.permission for route in ROUTES if not api_of(route)}
    assert free == {"public", "models", "usage.own"}


async def test_a_key_claims_no_more_urgency_than_it_may_and_has_no_more_without_a_claim() -> None:
    async with closed() as (served, admin):
        key = await made(served, admin, max_priority="bulk")
        claim = {**bearer(key), "x-smg-priority": "interactive"}
        refused = await ask(served.port, "POST", "/v1/chat/completions", chat(), claim)
        assert (refused.status, code_of(refused)) == (403, "priority_not_allowed")
        for sent in ({}, {"x-smg-priority": "bulk"}, {"x-claude-code-request-class": "main"}):
            headers = {**bearer(key), **sent}
            answer = await ask(served.port, "POST", "/v1/chat/completions", chat(), headers)
            assert answer.status == 200
        assert [run.context.priority for run in served.generations.runs] == ["bulk"] * 3


async def test_restrictions_are_listed_with_the_key_and_audited() -> None:
    async with closed() as (served, admin):
        only = {
            "models": ["llama-*"],
            "networks": ["10.0.0.0/8", "192.0.2.7/32"],
            "routes": ["chat"],
            "max_priority": "default",
        }
        await made(served, admin, models=["llama-*"], networks=["10.0.0.0/8", "192.0.2.7"], routes=["chat"], max_priority="default")  # fmt: skip
        listed = await ask(served.port, "GET", KEYS, b"", bearer(admin))
        (row,) = [one for one in listed.json()["keys"] if one["tenant"] == "acme"]
        assert {name: row[name] for name in only} == only
        audit = await ask(served.port, "GET", "/v1/cluster/audit", b"", bearer(admin))
        assert audit.json()["rows"][0]["after"]["models"] == ["llama-*"]


@pytest.mark.parametrize(
    ("wish", "where"),
    [
        ({"models": "m"}, "models"),
        ({"models": [""]}, "models[0]"),
        ({"models": ["x" * 129]}, "models[0]"),
        ({"models": ["m"] * 33}, "models"),
        ({"networks": ["10.0.0.0/8", "10.0.0.1/8"]}, "networks[1]"),
        ({"networks": [7]}, "networks[0]"),
        ({"routes": ["chats"]}, "routes[0]"),
        ({"max_priority": "urgent"}, "max_priority"),
        ({"max_priority": []}, "max_priority"),
        ({"colours": ["red"]}, "colours"),
    ],
)
async def test_what_is_no_restriction_is_refused_with_its_place(
    wish: dict[str, Any], where: str
) -> None:
    async with closed() as (served, admin):
        said = {"tenant": "acme", **wish}
        refused = await ask(served.port, "POST", KEYS, said, bearer(admin))
        assert (refused.status, refused.error()["param"]) == (400, where)


async def test_the_first_admin_key_has_no_restrictions() -> None:
    async with node() as served:
        wish = {"role": "admin", "networks": ["10.0.0.0/8"]}
        refused = await ask(served.port, "POST", KEYS, wish)
        assert (refused.status, code_of(refused)) == (409, "first_admin_key_restricted")
        assert (await ask(served.port, "GET", "/v1/models")).status == 200


async def test_living_members_that_do_not_know_such_a_key_are_named() -> None:
    async with closed() as (served, admin):
        for wish in ({"role": "tenant_admin"}, {"models": ["m"]}):
            said = {"tenant": "acme", **wish}
            answer = await ask(served.port, "POST", KEYS, said, bearer(admin))
            assert answer.json()["unknown_on"] == ["b"]
        plain = await ask(served.port, "POST", KEYS, {"tenant": "acme"}, bearer(admin))
        assert "unknown_on" not in plain.json()
        rows = served.cluster.rows
        rows["b"] = replace(rows["b"], meta={"version": "1.2.3", KEYS_META: KEYS_FORM})
        known = await ask(
            served.port, "POST", KEYS, {"tenant": "a", "models": ["m"]}, bearer(admin)
        )
        assert "unknown_on" not in known.json()
