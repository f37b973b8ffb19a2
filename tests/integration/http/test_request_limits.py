"""Limits of the cluster, as clients of one real node meet them: the official SDK is the judge."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPResponse
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import openai
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionUserMessageParam

from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import Simulated, running_simulated

pytestmark = pytest.mark.integration

WAIT_S = 30.0
WINDOW_S = 10
LAST_ASKED_S = 0.6
"""So long before a window nobody asks any more, so that no request is one of that window."""
BASE = "/v1/cluster/limits"
HEADERS = {"If-Match": "*", "content-type": "application/json"}
USER: ChatCompletionUserMessageParam = {"role": "user", "content": "Hi"}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    flags = ("--script", "endless", "--model", "told", "--itl-ms", "1", "--context", "100000")
    with running_simulated(
        tmp_path_factory.mktemp("engine"), *flags, "--blocks", "16000"
    ) as running:
        yield running


@pytest.fixture(scope="module")
def node(engine: Simulated, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    workers = [f"grpc://{address}" for address in engine.addresses]
    with running_node(tmp_path_factory.mktemp("node"), workers=workers) as running:
        yield running


@pytest.fixture
def client(node: RunningNode) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{node.url}/v1", api_key="none", max_retries=0, timeout=60) as client:
        yield client


def put(node: RunningNode, scope: str, **rule: object) -> None:
    body = json.dumps(rule).encode()
    request = Request(f"{node.url}{BASE}/{scope}", body, HEADERS, method="PUT")
    try:
        with urlopen(request, timeout=10) as answer:
            assert isinstance(answer, HTTPResponse)
            assert answer.status in (200, 201)
    except HTTPError as error:
        raise AssertionError(error.read()) from error


def remove(node: RunningNode, scope: str) -> None:
    request = Request(f"{node.url}{BASE}/{scope}", headers=HEADERS, method="DELETE")
    with urlopen(request, timeout=10) as answer:
        assert answer.status in (200, 204)


@pytest.fixture
def clean(node: RunningNode) -> Iterator[RunningNode]:
    """The node, without limits before and after."""
    yield node
    remove(node, "model=told")


def ask(client: OpenAI, tokens: int = 4) -> "dict[str, str]":
    """Return the headers of an answer."""
    raw = client.chat.completions.with_raw_response.create(
        model="told",
        messages=[USER],
        max_tokens=tokens,
    )
    assert raw.parse().choices[0].finish_reason == "length"
    return dict(raw.headers)


def let_in(client: OpenAI) -> bool:
    try:
        ask(client)
    except openai.RateLimitError:
        return False
    return True


def begin_a_window(node: RunningNode, client: OpenAI) -> None:
    """Wait until the limits have an owner, and then for the beginning of the window after the next one.

    In the first one of a new cluster a few rights are not given, for nobody knows yet who has them.
    """

    def owned() -> bool:
        try:
            return ask(client, 1).get("x-smg-limit-state") == "exact"
        except openai.RateLimitError:
            return False

    node.process.wait_until(owned, "the owner of its limits", WAIT_S)
    begins_s = (time.clock_gettime(time.CLOCK_REALTIME) // WINDOW_S + 2) * WINDOW_S
    while True:
        left_s = begins_s - time.clock_gettime(time.CLOCK_REALTIME)
        if left_s <= 0:
            # The last request may be one of the window that has begun.
            begins_s += WINDOW_S
        elif left_s <= LAST_ASKED_S:
            time.sleep(left_s)
            return
        else:
            # An owner whom nobody asks goes to sleep, and takes a second to wake.
            owned()
            time.sleep(0.3)


def test_as_many_requests_are_let_in_as_the_limit_says(clean: RunningNode, client: OpenAI) -> None:
    put(clean, "model=told", amounts=[{"unit": "requests", "amount": 10, "window": "10s"}])
    begin_a_window(clean, client)
    before = admitted(clean)
    headers = ask(client)
    assert headers["x-ratelimit-limit-requests"] == "10"
    assert int(headers["x-ratelimit-remaining-requests"]) <= 9
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda _: let_in(client), range(30)))
    assert sum(results) == 9
    with pytest.raises(openai.RateLimitError) as refused:
        ask(client)
    headers = dict(refused.value.response.headers)
    assert headers["x-ratelimit-limit-requests"] == "10"
    assert headers["x-ratelimit-remaining-requests"] == "0"
    assert headers["x-smg-limit"] == "model=told#requests/10s"
    assert headers["x-smg-limit-state"] == "exact"
    assert headers["x-should-retry"] == "true"
    assert 1 <= int(headers["retry-after"]) <= 11
    assert refused.value.code == "rate_limit_exceeded"
    assert refused.value.param == "requests/10s"
    assert "model=told" in refused.value.message
    assert admitted(clean) - before == 10
    assert clean.metric("smg_node_limited_requests_open") == 0


def admitted(node: RunningNode) -> float:
    return node.metric(
        "smg_node_limit_requests_total", limit="model=told#requests/10s", outcome="admitted"
    )


def test_tokens_are_charged_as_they_were_used(clean: RunningNode, client: OpenAI) -> None:
    put(clean, "model=told", amounts=[{"unit": "tokens", "amount": 20_000, "window": "10s"}])
    begin_a_window(clean, client)
    headers = ask(client, 300)
    assert headers["x-ratelimit-limit-tokens"] == "20000"
    assert 0 < int(headers["x-ratelimit-remaining-tokens"]) < 19_700
    with pytest.raises(openai.RateLimitError) as refused:
        client.completions.create(model="told", prompt=[65] * 20_001)
    assert refused.value.param == "tokens/10s"
    assert refused.value.response.headers["x-should-retry"] == "false"
    assert clean.metric("smg_node_limit_charged_total") >= 300
    assert clean.metric("smg_node_limit_owed_total") == 0


def test_an_answer_ends_where_no_tokens_are_left(clean: RunningNode, client: OpenAI) -> None:
    put(
        clean,
        "model=told",
        amounts=[{"unit": "output_tokens", "amount": 2_000, "window": "10s"}],
        on_exhausted="finish",
    )
    begin_a_window(clean, client)
    answer = client.chat.completions.create(model="told", messages=[USER])
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None
    assert 950 <= answer.usage.completion_tokens <= 2_001


def test_places_are_free_again_when_answers_end(clean: RunningNode, client: OpenAI) -> None:
    put(clean, "model=told", concurrency=2)
    clean.process.wait_until(lambda: let_in(client), "a place", WAIT_S)
    stream = client.chat.completions.create(
        model="told",
        messages=[USER],
        max_tokens=20_000,
        stream=True,
    )
    next(iter(stream))
    assert clean.metric("smg_node_limited_requests_open") == 1
    stream.close()
    clean.process.wait_until(
        lambda: clean.metric("smg_node_limited_requests_open") == 0, "it settled", WAIT_S
    )
    assert let_in(client)
