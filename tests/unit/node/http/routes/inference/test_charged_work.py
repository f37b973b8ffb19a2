"""Counting, encoding and decoding tokens is charged as a request that uses none, in every API."""

from typing import Any

import pytest

from smg_node.core.errors import invalid
from support.history.history_world import counting
from support.http.fake_tokens import FakeTokens
from support.http.history_routes import Here
from support.http.http_node import node
from support.http.raw_http import Response, ask
from support.rights.fake_rights import LimitWorld, door_of, limit, whole

CASES: dict[str, dict[str, Any]] = {
    "/v1/tokenize": {"model": "m", "prompt": "Hi"},
    "/v1/detokenize": {"model": "m", "tokens": [72, 105]},
    "/v1beta/models/m:countTokens": {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
    "/v1/responses/input_tokens": {"model": "m", "input": "Hi"},
}


def left_in(answer: Response) -> list[str]:
    """Return how many requests an answer's headers say are left, by whatever name."""
    return [value for name, value in answer.headers.items() if name.endswith("remaining-requests")]


@pytest.mark.parametrize("path", CASES)
async def test_work_on_tokens_is_charged_as_a_request_without_tokens(path: str) -> None:
    world = LimitWorld()
    requests, tokens = world.add(limit(), 2, 10), world.add(limit("tokens"), 100)
    async with node(counting, history=Here()) as served:
        assert isinstance(served.parts.tokens, FakeTokens)
        served.parts.tokens.door = door_of(world)
        done = [await ask(served.port, "POST", path, CASES[path]) for _ in range(2)]
        refused = await ask(served.port, "POST", path, CASES[path])
    assert [answer.status for answer in done] == [200, 200]
    assert [left_in(answer) for answer in done] == [["1"], ["0"]]
    assert refused.status == 429
    assert int(refused.headers["retry-after"]) > 0
    assert (whole(requests), whole(tokens)) == ((0, 2), (100, 0))


@pytest.mark.parametrize("path", CASES)
async def test_work_that_fails_is_not_charged(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def break_(*_asked: Any, **_more: Any) -> Any:
        raise invalid("the template refuses it")

    monkeypatch.setattr(FakeTokens, "tokenize", break_)
    monkeypatch.setattr(FakeTokens, "detokenize", break_)
    world = LimitWorld()
    requests = world.add(limit(), 2)
    async with node(counting, history=Here()) as served:
        assert isinstance(served.parts.tokens, FakeTokens)
        served.parts.tokens.door = door_of(world)
        if path.startswith("/v1/responses"):
            body: dict[str, Any] = {**CASES[path], "previous_response_id": "resp_none"}
        else:
            body = CASES[path]
        answer = await ask(served.port, "POST", path, body)
    assert answer.status in (400, 404)
    assert whole(requests) == (2, 0)
