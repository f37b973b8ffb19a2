"""What goes wrong reaches users of the official client as the exception they expect."""

import re
from collections.abc import Callable
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from support.models.tiny_model import CONTEXT
from support.processes.mlx_engine import MlxEngine
from support.processes.node import running_node

pytestmark = pytest.mark.conformance

USER = {"role": "user", "content": "Hi"}


def chat(**changes: Any) -> Callable[[OpenAI], object]:
    body: dict[str, Any] = {"model": "tiny", "messages": [USER]} | changes
    return lambda client: client.chat.completions.create(**body)


def completion(**changes: Any) -> Callable[[OpenAI], object]:
    body: dict[str, Any] = {"model": "tiny", "prompt": "Hi"} | changes
    return lambda client: client.completions.create(**body)


@pytest.mark.parametrize(
    ("ask", "param", "code"),
    [
        (chat(messages=[]), "messages", None),
        (chat(messages=[{"role": "nobody", "content": "x"}]), "messages[0].role", None),
        (chat(messages=[USER, {"role": "user", "content": 7}]), "messages[1].content", None),
        (chat(temperature=2.1), "temperature", None),
        (chat(temperature="warm"), "temperature", None),
        (chat(top_p=0), "top_p", None),
        (chat(n=0), "n", None),
        (chat(n=17), "n", None),
        (chat(n=10**30), "n", None),
        (chat(max_tokens=0), "max_tokens", None),
        (chat(max_completion_tokens=-1), "max_completion_tokens", None),
        (chat(stop=["x", ""]), "stop[1]", None),
        (chat(stop=["x"] * 17), "stop", None),
        (chat(top_logprobs=21, logprobs=True), "top_logprobs", None),
        (chat(top_logprobs=2), "top_logprobs", None),
        (chat(logit_bias={"99999999": 1}), "logit_bias", None),
        (chat(logit_bias={"5": 101}), "logit_bias.5", None),
        (chat(stream_options={"include_usage": True}), "stream_options", None),
        (
            chat(
                response_format={
                    "type": "json_schema",
                    "json_schema": {"name": "x", "schema": {}, "strict": True},
                }
            ),
            "response_format.json_schema.schema",
            "unsupported_parameter",
        ),
        (completion(prompt=[]), "prompt", None),
        (completion(prompt=[[1], []]), "prompt[1]", None),
        (completion(prompt=[1, -1]), "prompt[1]", None),
        (completion(prompt=[1, 10**9]), "prompt", None),
        (completion(prompt=[7] * CONTEXT), "prompt", "context_length_exceeded"),
        (completion(suffix="x"), "suffix", "unsupported_parameter"),
        (completion(best_of=3), "best_of", "unsupported_parameter"),
        (completion(echo=True, logprobs=1), "logprobs", "unsupported_parameter"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_request_is_a_bad_request_that_names_the_place(
    client: OpenAI, ask: Callable[[OpenAI], object], param: str, code: str | None
) -> None:
    with pytest.raises(openai.BadRequestError) as failure:
        ask(client)
    error = failure.value
    # The place, or one inside it that is more exact.
    assert re.fullmatch(re.escape(param) + r"([.\[].*)?", error.param or "")
    assert error.type == "invalid_request_error"
    assert error.code
    assert code in (None, error.code)
    assert error.request_id


def test_a_model_that_is_not_there_is_not_found(client: OpenAI) -> None:
    for ask in (
        chat(model="nobody/nothing"),
        completion(model="nobody/nothing"),
        lambda client: client.models.retrieve("nobody/nothing"),
    ):
        with pytest.raises(openai.NotFoundError) as failure:
            ask(client)
        assert failure.value.code == "model_not_found"


def test_the_same_holds_before_a_stream_begins(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError):
        chat(stream=True, temperature=-1)(client)
    with pytest.raises(openai.NotFoundError):
        chat(stream=True, model="nobody")(client)


async def test_the_asynchronous_client_raises_the_same(async_client: AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="temperature"):
        await async_client.chat.completions.create(
            model="tiny", messages=[{"role": "user", "content": "Hi"}], temperature=-1
        )


def test_a_path_that_is_not_there_is_not_found(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as failure:
        client.images.generate(prompt="a llama", model="tiny")
    assert failure.value.code == "unknown_url"


def test_wrong_requests_leave_node_and_engine_well(
    client: OpenAI, engines: dict[str, MlxEngine]
) -> None:
    for _ in range(3):
        with pytest.raises(openai.BadRequestError):
            completion(prompt=[1, 10**9])(client)
    answer = client.completions.create(model="tiny", prompt="Hi:\n", max_tokens=500)
    assert answer.choices[0].text == engines["tiny"].script.text


def test_a_node_without_workers_does_not_know_the_model(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with running_node(tmp_path_factory.mktemp("alone")) as alone:
        client = OpenAI(base_url=f"{alone.url}/v1", api_key="none", max_retries=0, timeout=60)
        with client, pytest.raises(openai.NotFoundError) as failure:
            chat()(client)
    assert failure.value.code == "model_not_found"


def test_a_worker_that_never_came_is_no_fault_of_the_caller(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    flags = ("--worker", "grpc://127.0.0.1:1?model=tiny", "--routing.wait-for-worker-s", "0.1")
    with running_node(tmp_path_factory.mktemp("waiting"), flags=flags) as waiting:
        client = OpenAI(base_url=f"{waiting.url}/v1", api_key="none", max_retries=0, timeout=60)
        with client, pytest.raises(openai.InternalServerError) as failure:
            chat()(client)
    assert failure.value.status_code == 503
    assert failure.value.code == "no_worker_available"
    assert failure.value.response.headers["retry-after"]
