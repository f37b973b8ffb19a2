"""Workers that speak HTTP, behind a real node: streamed through, retried elsewhere, cut when clients leave."""

import json
import re
import signal
from collections.abc import Callable, Iterator
from urllib.request import Request, urlopen

import pytest
from openai import APIError, BadRequestError, InternalServerError, OpenAI
from openai.types.chat import ChatCompletionChunk

from support.http.chat_client import JSON, becomes, begin, chat, content_of, port_of, say, text_of
from support.http.raw_http import ask, connect
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import SAYS, Simulated, running_simulated

pytestmark = pytest.mark.integration

KEY = "k-of-the-worker"
WAIT_S = 30.0
FREE_S = 1.0
OPENAI = ("--contract", "openai", "--itl-ms", "2")


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    with running_simulated(
        tmp_path_factory.mktemp("engines"), *OPENAI, "--model", "told", workers=2
    ) as running:
        yield running


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    flags = ("--script", "endless", "--model", "endless", "--context", "1000000", "--no-cache")
    room = ("--blocks", "64000", "--api-key", KEY)
    with running_simulated(tmp_path_factory.mktemp("endless"), *OPENAI, *flags, *room) as running:
        yield running


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    """An engine over gRPC that serves a model which an HTTP worker serves too."""
    with running_simulated(tmp_path_factory.mktemp("tokens"), "--model", "both") as running:
        yield running


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    with running_simulated(tmp_path_factory.mktemp("both"), *OPENAI, "--model", "both") as running:
        yield running


@pytest.fixture(scope="module")
def node(
    engines: Simulated,
    tokens: Simulated,
    both: Simulated,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RunningNode]:
    first, second = engines.addresses
    # The second is known by its address only, and both under a name of this node's own.
    workers = [
        f"http://{first}?model=ours",
        f"{second}?model=ours",
        f"grpc://{tokens.address}",
        f"http://{both.address}",
    ]
    with running_node(tmp_path_factory.mktemp("node"), workers=workers) as running:
        yield running


@pytest.fixture
def client(node: RunningNode) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{node.url}/v1", api_key="none", max_retries=0, timeout=60) as client:
        yield client


def workers_of(node: RunningNode) -> dict[str, dict[str, object]]:
    with urlopen(f"{node.url}/workers", timeout=10) as answer:
        rows = json.load(answer)["workers"]
    return {row["url"]: row for row in rows}


def test_the_official_client_gets_the_same_text_streamed_and_not(client: OpenAI) -> None:
    whole = client.chat.completions.create(
        model="ours", messages=[{"role": "user", "content": "Hello?"}]
    )
    assert whole.choices[0].message.content == SAYS
    assert whole.model == "ours"
    assert whole.usage is not None
    stream = client.chat.completions.create(
        model="ours",
        messages=[{"role": "user", "content": "Hello?"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    text = "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
    assert text == SAYS
    assert {one.model for one in chunks} == {"ours"}
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


def test_responses_of_workers_that_speak_http_say_the_same(client: OpenAI) -> None:
    told = client.responses.create(model="ours", input="Hello?")
    assert told.output_text == SAYS
    assert (told.model, told.usage is not None) == ("ours", True)
    with client.responses.stream(
        model="ours", input="Again!", previous_response_id=told.id
    ) as stream:
        assert stream.get_final_response().output_text == SAYS
    with pytest.raises(BadRequestError) as found:
        client.responses.create(model="ours", input="Hello?", truncation="auto")
    assert found.value.param == "truncation"


def test_the_official_client_completes_and_embeds(client: OpenAI, node: RunningNode) -> None:
    told = client.completions.create(model="ours", prompt="Hello?", max_tokens=100)
    assert told.choices[0].text == SAYS
    packed = client.embeddings.create(model="ours", input=["a", "b"])
    plain = client.embeddings.create(model="ours", input=["a", "b"], encoding_format="float")
    assert [row.embedding for row in packed.data] == [row.embedding for row in plain.data]
    assert packed.model == "ours"
    assert "ours" in [model.id for model in client.models.list()]
    assert node.metric("smg_node_prompt_tokens_total", model="ours") > 0
    assert node.metric("smg_node_generations_total", dialect="embeddings", outcome="ok") >= 2


def test_a_mistake_of_the_client_comes_back_in_the_workers_words(client: OpenAI) -> None:
    with pytest.raises(BadRequestError) as caught:
        client.completions.create(model="ours", prompt="x", n=99)
    assert "n must be in 1..16" in caught.value.message
    assert caught.value.response.headers["x-smg-error-code"] == "upstream_refused"
    with pytest.raises(BadRequestError, match="bootstrap_room"):
        client.completions.create(model="ours", prompt="x", extra_body={"bootstrap_room": 1})


async def test_rerank_and_classify_go_to_workers_that_have_them(node: RunningNode) -> None:
    port = port_of(node.url)
    body = {"model": "ours", "query": "a b", "documents": ["c", "b a"], "top_n": 1}
    for path in ("/v1/rerank", "/rerank"):
        told = await ask(port, "POST", path, body, JSON)
        assert [row["index"] for row in told.json()["results"]] == [1], told.body
    for path in ("/v1/classify", "/classify"):
        told = await ask(port, "POST", path, {"model": "ours", "input": ["hm"]}, JSON)
        assert told.json()["data"][0]["label"] == "short"


async def test_headers_say_who_answered_and_hide_what_is_the_workers(node: RunningNode) -> None:
    port = port_of(node.url)
    async with connect(port) as client:
        stream = await begin(client, chat("ours"))
        streamed = await stream.to_end()
    assert (stream.status, streamed.done, text_of(streamed)) == (200, True, SAYS)
    assert stream.headers["content-type"].startswith("text/event-stream")
    assert stream.headers["x-smg-routed-worker-id"].startswith("w-")
    assert stream.headers["x-smg-attempts"] == "1"
    assert "set-cookie" not in stream.headers


async def test_engines_generate_and_http_workers_do_what_those_cannot(
    node: RunningNode, tokens: Simulated, both: Simulated
) -> None:
    port, rows = port_of(node.url), workers_of(node)
    engine, beside = rows[f"grpc://{tokens.address}"], rows[f"http://{both.address}"]
    answer = await say(port, chat("both"))
    assert content_of(answer)
    assert answer.headers["x-smg-routed-worker-id"] == engine["id"]
    told = await ask(port, "POST", "/v1/embeddings", {"model": "both", "input": "a"}, JSON)
    assert (told.status, told.headers["x-smg-routed-worker-id"]) == (200, beside["id"])
    assert beside["connection_mode"] == "http"
    assert "cannot do" in str(beside["details"])
    assert engine["connection_mode"] == "grpc"


async def test_what_nobody_can_do_is_said_so(node: RunningNode) -> None:
    port = port_of(node.url)
    told = await ask(port, "POST", "/v1/tokenize", {"model": "ours", "prompt": "a"}, JSON)
    assert (told.status, told.json()["error"]["code"]) == (501, "not_implemented")
    told = await ask(port, "POST", "/v1/rerank", {"model": "nobody", "query": "a"}, JSON)
    assert (told.status, told.json()["error"]["code"]) == (404, "model_not_found")


async def test_every_decision_is_explained(node: RunningNode) -> None:
    port = port_of(node.url)
    told = await ask(
        port, "POST", "/v1/chat/completions", chat("ours"), {**JSON, "x-request-id": "asked-1"}
    )
    assert told.status == 200
    explained = (await ask(port, "GET", "/v1/cluster/explain/asked-1")).json()
    assert '"policy": "cache_aware"' in json.dumps(explained)
    assert "ours" in json.dumps(explained)


async def test_a_prompt_goes_back_to_the_worker_that_has_worked_it_off(node: RunningNode) -> None:
    port = port_of(node.url)
    for talk in range(4):
        turns = [{"role": "user", "content": f"{talk} " + "once upon a time " * 40}]
        went = []
        for _ in range(4):
            body = {"model": "ours", "messages": turns, "max_tokens": 3}
            answer = await ask(port, "POST", "/v1/chat/completions", body, JSON)
            assert answer.status == 200
            went.append(answer.headers["x-smg-routed-worker-id"])
            turns = [
                *turns,
                {"role": "assistant", "content": "and"},
                {"role": "user", "content": "?"},
            ]
        assert len(set(went)) == 1


def test_the_worker_is_known_as_what_it_is(node: RunningNode, engines: Simulated) -> None:
    rows = workers_of(node)
    first, second = rows[f"http://{engines.addresses[0]}"], rows[engines.addresses[1]]
    for row in (first, second):
        assert (row["status"], row["contract"], row["model"]) == ("ready", "openai", "ours")
        assert row["connection_mode"] == "http"
        assert "'served_name': 'told'" in str(row["details"])
    with urlopen(f"{node.url}/health_generate", timeout=10) as answer:
        assert json.load(answer)["models"]["ours"] == "ok"


def test_all_spellings_of_an_address_are_one_worker(
    tokens: Simulated, both: Simulated, tmp_path_factory: pytest.TempPathFactory
) -> None:
    port = tokens.address.rpartition(":")[2]
    names = (tokens.address, f"localhost:{port}", f"GRPC://LocalHost:{port}/")
    again_and_again = (*names, f"http://{both.address}/v1")
    flags = [word for url in again_and_again for word in ("--worker", url)]
    urls = [f"grpc://{tokens.address}", f"http://{both.address}"]
    scratch = tmp_path_factory.mktemp("spellings")
    with running_node(scratch, workers=urls, flags=flags) as node:
        rows = workers_of(node)
        assert sorted(str(row["contract"]) for row in rows.values()) == ["openai", "vllm"]
        again = Request(
            f"{node.url}/workers",
            json.dumps({"url": f"http://{both.address}/v1/"}).encode(),
            {"content-type": "application/json"},
        )
        with urlopen(again, timeout=10) as answer:
            said = json.load(answer)["worker_id"]
        assert said in [row["id"] for row in rows.values() if row["contract"] == "openai"]
        assert len(workers_of(node)) == 2


async def test_a_client_that_leaves_frees_the_slot_at_once(
    endless: Simulated, tmp_path_factory: pytest.TempPathFactory
) -> None:
    scratch = tmp_path_factory.mktemp("leaving")
    with running_node(scratch, workers=[]) as node:
        port = port_of(node.url)
        wish = {"url": f"http://{endless.address}", "api_key": KEY}
        assert (await ask(port, "POST", "/workers", wish, JSON)).status == 202
        node.process.wait_until(
            lambda: node.status("/v1/models/endless") == 200, "knowing its model", WAIT_S
        )
        busy = running_of(endless)
        for _ in range(3):
            async with connect(port) as client:
                stream = await begin(client, chat("endless", ignore_eos=True))
                await stream.until_text()
                assert busy() == 1
                client.vanish()
                await becomes(lambda: busy() == 0, FREE_S, "the engine is idle")
        assert node.metric("smg_node_generations_total", outcome="client_gone") == 3
        assert KEY not in node.process.said()


def running_of(engine: Simulated) -> Callable[[], int]:
    asked = Request(f"http://{engine.address}/metrics", headers={"authorization": f"Bearer {KEY}"})

    def busy() -> int:
        with urlopen(asked, timeout=10) as page:
            found = re.search(rb"num_requests_running\{.*\} ([0-9]+)", page.read())
        assert found is not None
        return int(found[1])

    return busy


def test_a_dead_worker_costs_no_client_anything_before_its_first_byte(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    scratch = tmp_path_factory.mktemp("dying")
    with (
        running_simulated(scratch / "a", *OPENAI, "--model", "m") as first,
        running_simulated(scratch / "b", *OPENAI, "--model", "m") as second,
    ):
        urls = [f"http://{first.address}", f"http://{second.address}"]
        flags = ("--routing.policy", "round_robin", "--workers.probe-interval-s", "60")
        with (
            running_node(scratch / "n", workers=urls, flags=flags) as node,
            OpenAI(base_url=f"{node.url}/v1", api_key="none", max_retries=0, timeout=60) as client,
        ):

            def told() -> str | None:
                answer = client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": "Hello?"}]
                )
                return answer.choices[0].message.content

            assert [told() for _ in range(4)] == [SAYS] * 4
            first.process.signal(signal.SIGKILL)
            assert [told() for _ in range(8)] == [SAYS] * 8
            second.process.signal(signal.SIGKILL)
            with pytest.raises(InternalServerError) as caught:
                told()
            assert caught.value.response.headers["x-smg-error-code"] in (
                "no_worker_available",
                "upstream_unavailable",
            )


def test_a_stream_whose_worker_dies_ends_with_an_error_and_nothing_made_up(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    scratch = tmp_path_factory.mktemp("torn")
    slow = ("--contract", "openai", "--itl-ms", "50", "--model", "m", "--script", "endless")
    with (
        running_simulated(scratch / "a", *slow) as engine,
        running_node(scratch / "n", workers=[f"http://{engine.address}"]) as node,
        OpenAI(base_url=f"{node.url}/v1", api_key="none", max_retries=0, timeout=60) as client,
    ):
        heard: list[ChatCompletionChunk] = []

        def listen() -> None:
            for chunk in client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "Hello?"}], stream=True
            ):
                heard.append(chunk)
                engine.process.signal(signal.SIGKILL)

        with pytest.raises(APIError, match="cannot be reached") as caught:
            listen()
        assert "part of the answer" in str(caught.value)
        assert heard
        assert all(one.finish_reason is None for chunk in heard for one in chunk.choices)
        assert node.metric("smg_node_generations_total", outcome="failed") == 1
