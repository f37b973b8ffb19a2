"""Credentials: which header each hosting looks at, and in which envelope it says no."""

from typing import Any

import pytest

from support.providers.stand_ins import KEY, Desk
from support.providers.vendor_requests import PLACES

LET_IN: list[tuple[str, tuple[str, ...]]] = [
    ("openai", ("authorization",)),
    ("anthropic", ("x-api-key", "authorization")),
    ("gemini", ("x-goog-api-key", "authorization")),
    ("vertex", ("authorization",)),
    ("vertex_anthropic", ("authorization",)),
    ("bedrock", ("authorization",)),
    ("bedrock_invoke", ("authorization",)),
    ("mantle", ("authorization", "x-api-key")),
    ("azure", ("api-key", "authorization")),
    ("azure_dated", ("api-key", "authorization")),
    ("foundry", ("api-key", "x-api-key", "authorization")),
    ("claude_aws", ("x-api-key",)),
    ("claude_gcp", ("authorization",)),
    ("xai", ("authorization",)),
    ("openai_like", ("authorization",)),
]
HEADERS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")


def only(name: str, key: str = KEY) -> dict[str, str]:
    """Return headers of which only one has a credential."""
    shown = f"Bearer {key}" if name == "authorization" else key
    return {**dict.fromkeys(HEADERS, ""), name: shown}


@pytest.mark.parametrize(("kind", "headers"), LET_IN)
def test_each_hosting_looks_at_its_own_headers(kind: str, headers: tuple[str, ...]) -> None:
    path, body = PLACES[kind]
    for name in HEADERS:
        status = Desk(kind).ask(path, body, only(name)).status
        assert (status == 200) == (name in headers), name


@pytest.mark.parametrize(
    ("kind", "status", "told"),
    [
        ("openai", 401, {"code": "invalid_api_key"}),
        ("azure", 401, {"code": "401"}),
        ("anthropic", 401, {"type": "authentication_error", "message": "invalid x-api-key"}),
        ("gemini", 400, {"status": "INVALID_ARGUMENT"}),
        ("vertex", 401, {"status": "UNAUTHENTICATED"}),
        ("vertex_anthropic", 401, {"status": "UNAUTHENTICATED"}),
        ("foundry", 401, {"code": "401"}),
    ],
)
def test_a_wrong_key_is_refused_in_the_envelope_of_the_place(
    kind: str, status: int, told: dict[str, Any]
) -> None:
    path, body = PLACES[kind]
    wrong = {name: only(name, "wrong")[name] for name in HEADERS}
    got, error = Desk(kind).refused(path, body, headers=wrong)
    assert (got, error["error"] | told) == (status, error["error"])


def test_a_key_may_stand_in_the_query_of_gemini() -> None:
    path, body = PLACES["gemini"]
    nothing = dict.fromkeys(HEADERS, "")
    assert Desk("gemini").ask(f"{path}?key={KEY}", body, nothing).status == 200
    status, error = Desk("gemini").refused(path, body, headers=nothing)
    assert (status, error["error"]["status"]) == (403, "PERMISSION_DENIED")


@pytest.mark.parametrize(
    ("kind", "header"),
    [("anthropic", "anthropic-version"), ("claude_aws", "anthropic-workspace-id")],
)
def test_a_header_that_is_needed_is_asked_for(kind: str, header: str) -> None:
    path, body = PLACES[kind]
    status, error = Desk(kind).refused(path, body, headers={header: ""})
    assert (status, error["error"]["message"]) == (400, f"{header}: header is required")


def test_keys_come_and_go_while_it_runs() -> None:
    desk, (path, body) = Desk("openai"), PLACES["openai"]
    credentials = desk.vendor.credentials
    credentials.add("sk-new")
    assert desk.ask(path, body, only("authorization", "sk-new")).status == 200
    assert credentials.remove("sk-new")
    assert not credentials.remove("sk-new")
    assert desk.ask(path, body, only("authorization", "sk-new")).status == 401


def test_an_access_token_is_let_in_until_its_end() -> None:
    desk = Desk("vertex", token_life_s=5.0)
    path, body = PLACES["vertex"]
    token = desk.vendor.tokens.issue("robot", desk.times.wall_s)
    assert desk.ask(path, body, only("authorization", token)).status == 200
    desk.now_s = 5.1
    assert desk.ask(path, body, only("authorization", token)).status == 401
