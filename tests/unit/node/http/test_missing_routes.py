"""Paths and methods that there are not: who may read that, and what OPTIONS says of a path."""

import pytest

from support.http.http_node import node
from support.http.raw_http import ask


@pytest.mark.parametrize(
    ("method", "path", "status", "readable"),
    [
        ("GET", "/v1/nope", 404, True),
        ("POST", "//v1/chat/completions", 404, True),
        ("GET", "/v1/chat/completions", 405, True),
        ("DELETE", "/health", 405, True),
        ("OPTIONS", "/v1/nope", 404, True),
        ("DELETE", "/workers", 405, False),
        ("POST", "/v1/cluster/members", 405, False),
        ("PUT", "/get_loads", 405, False),
    ],
)
@pytest.mark.parametrize("origins", [("https://a.example",), ("*",)])
async def test_a_page_of_an_allowed_origin_reads_that_there_is_nothing_but_not_of_operators(
    method: str, path: str, status: int, readable: bool, origins: tuple[str, ...]
) -> None:
    async with node(cors_allowed_origins=origins) as served:
        for origin, allowed in (("https://a.example", True), ("https://b.example", "*" in origins)):
            answer = await ask(served.port, method, path, b"", {"origin": origin})
            assert answer.status == status
            assert ("access-control-allow-origin" in answer.headers) == (readable and allowed)


async def test_options_without_a_preflight_lists_the_methods_of_a_path() -> None:
    async with node() as served:
        chats = await ask(served.port, "OPTIONS", "/v1/chat/completions")
        worker = await ask(served.port, "OPTIONS", "/workers/w-1")
        nothing = await ask(served.port, "OPTIONS", "/nope")
    assert (chats.status, chats.headers["allow"]) == (204, "POST, OPTIONS")
    assert worker.headers["allow"] == "DELETE, GET, PATCH, PUT, HEAD, OPTIONS"
    assert (nothing.status, nothing.error()["code"]) == (404, "unknown_url")


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "path",
    [
        "/v1beta/tunedModels",
        "/v1/tunedModels/mine:generateContent",
        "/v1alpha/tunedModels/mine:streamGenerateContent?alt=sse",
        "/v1beta/cachedContents",
    ],
)
async def test_what_only_googles_clients_ask_for_is_not_there_in_their_words(
    method: str, path: str
) -> None:
    async with node() as served:
        answer = await ask(served.port, method, path, b"{}")
    assert answer.status == 404
    said = answer.json()["error"]
    assert (said["code"], said["status"]) == (404, "NOT_FOUND")
    assert path.partition("?")[0] in said["message"]
