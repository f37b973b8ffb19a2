"""Chat Completions through the official client: what the engine said, exactly."""

from itertools import pairwise
from typing import Any

import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam
from tokenizers import Tokenizer

from support.models.tiny_tokenizer import PROMPT_END, token_bytes
from support.processes.mlx_engine import MlxEngine

pytestmark = pytest.mark.conformance

HELLO: list[ChatCompletionMessageParam] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Say something."},
]
HELLO_TEXT = (
    "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nSay something.<|im_end|>\n"
    + PROMPT_END
)


def tokenizer_of(engine: MlxEngine) -> Tokenizer:
    return Tokenizer.from_file(str(engine.model_dir / "tokenizer.json"))


def usage_of(engine: MlxEngine) -> tuple[int, int]:
    """Return prompt and completion tokens of HELLO; the end of the turn is a token as well."""
    return len(tokenizer_of(engine).encode(HELLO_TEXT).ids), len(engine.script.ids) + 1


def counted(usage: CompletionUsage | None) -> tuple[int, int]:
    assert usage is not None
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    return usage.prompt_tokens, usage.completion_tokens


def joined(chunks: list[ChatCompletionChunk], choice: int = 0) -> str:
    return "".join(
        part.delta.content or ""
        for chunk in chunks
        for part in chunk.choices
        if part.index == choice
    )


@pytest.mark.parametrize("model", ["tiny", "split"])
def test_an_answer_is_the_script(client: OpenAI, engines: dict[str, MlxEngine], model: str) -> None:
    answer = client.chat.completions.create(model=model, messages=HELLO)
    (choice,) = answer.choices
    assert choice.message.content == engines[model].script.text
    assert (choice.message.role, choice.finish_reason, choice.index) == ("assistant", "stop", 0)
    assert choice.logprobs is None
    assert (answer.object, answer.model) == ("chat.completion", model)
    assert answer.id.startswith("chatcmpl-")
    assert counted(answer.usage) == usage_of(engines[model])


@pytest.mark.parametrize("model", ["tiny", "split"])
def test_a_stream_is_the_script_in_whole_characters(
    client: OpenAI, engines: dict[str, MlxEngine], model: str
) -> None:
    with client.chat.completions.create(model=model, messages=HELLO, stream=True) as stream:
        chunks = list(stream)
    assert joined(chunks) == engines[model].script.text
    assert chunks[0].choices[0].delta.role == "assistant"
    assert len({(chunk.id, chunk.created, chunk.model, chunk.object) for chunk in chunks}) == 1
    assert chunks[0].object == "chat.completion.chunk"
    assert "\ufffd" not in joined(chunks)
    assert len([chunk for chunk in chunks if joined([chunk])]) > 20
    reasons = [chunk.choices[0].finish_reason for chunk in chunks]
    assert reasons == [None] * (len(chunks) - 1) + ["stop"]
    assert all(chunk.usage is None for chunk in chunks)


async def test_the_asynchronous_client_reads_the_same(
    async_client: AsyncOpenAI, engines: dict[str, MlxEngine]
) -> None:
    answer = await async_client.chat.completions.create(model="tiny", messages=HELLO)
    stream = await async_client.chat.completions.create(
        model="tiny", messages=HELLO, stream=True, stream_options={"include_usage": True}
    )
    async with stream:
        chunks = [chunk async for chunk in stream]
    script = engines["tiny"].script.text
    assert answer.choices[0].message.content == joined(chunks) == script
    assert counted(answer.usage) == counted(chunks[-1].usage) == usage_of(engines["tiny"])


async def test_the_clients_own_accumulator_understands_the_stream(
    async_client: AsyncOpenAI, engines: dict[str, MlxEngine]
) -> None:
    async with async_client.chat.completions.stream(
        model="split", messages=HELLO, n=2, logprobs=True, top_logprobs=1
    ) as stream:
        kinds = {event.type async for event in stream}
        final = await stream.get_final_completion()
    assert {"chunk", "content.delta", "content.done", "logprobs.content.done"} <= kinds
    texts = [choice.message.content for choice in final.choices]
    assert texts == [engines["split"].script.text] * 2


def test_usage_is_streamed_last_when_asked_for(
    client: OpenAI, engines: dict[str, MlxEngine]
) -> None:
    with client.chat.completions.create(
        model="tiny", messages=HELLO, stream=True, stream_options={"include_usage": True}
    ) as stream:
        *chunks, last = list(stream)
    assert last.choices == []
    assert counted(last.usage) == usage_of(engines["tiny"])
    assert all(chunk.usage is None for chunk in chunks)


def stops_between_tokens(engine: MlxEngine) -> list[str]:
    """Return texts that begin in one token of the script and end in the next, each found once."""
    tokenizer = tokenizer_of(engine)
    texts = [token_bytes(tokenizer, i).decode("utf-8", "replace") for i in engine.script.ids]
    ends = [left[-1:] + right[:1] for left, right in pairwise(texts) if right]
    script = engine.script.text
    return [end for end in ends if "\ufffd" not in end and script.count(end) == 1]


@pytest.mark.parametrize("stream", [False, True])
def test_a_stop_string_cuts_across_tokens(
    client: OpenAI, engines: dict[str, MlxEngine], *, stream: bool
) -> None:
    engine = engines["tiny"]
    stops = stops_between_tokens(engine)
    assert len(stops) > 10
    for stop in stops[::4]:
        options: dict[str, Any] = {"model": "tiny", "messages": HELLO, "stop": ["never said", stop]}
        expected = engine.script.text.split(stop)[0]
        if stream:
            with client.chat.completions.create(stream=True, **options) as chunks:
                said = list(chunks)
            assert joined(said) == expected
            assert said[-1].choices[0].finish_reason == "stop"
        else:
            answer = client.chat.completions.create(**options)
            assert answer.choices[0].message.content == expected
            assert answer.choices[0].finish_reason == "stop"
            assert answer.usage is not None
            assert answer.usage.completion_tokens < len(engine.script.ids)


def test_a_stop_string_that_begins_but_does_not_come_takes_nothing_away(
    client: OpenAI, engines: dict[str, MlxEngine]
) -> None:
    script = engines["tiny"].script.text
    answer = client.chat.completions.create(
        model="tiny", messages=HELLO, stop=[script[-3:] + "!", script[10:16] + "x"]
    )
    assert answer.choices[0].message.content == script


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_the_number_of_tokens_has_a_limit(
    client: OpenAI, engines: dict[str, MlxEngine], name: str
) -> None:
    engine = engines["tiny"]
    for limit in (1, 5):
        options: dict[str, Any] = {name: limit}
        answer = client.chat.completions.create(model="tiny", messages=HELLO, **options)
        expected = tokenizer_of(engine).decode(list(engine.script.ids[:limit]))
        assert answer.choices[0].message.content == expected
        assert answer.choices[0].finish_reason == "length"
        assert counted(answer.usage)[1] == limit


@pytest.mark.parametrize("stream", [False, True])
def test_three_choices_are_three_answers_to_one_prompt(
    client: OpenAI, engines: dict[str, MlxEngine], *, stream: bool
) -> None:
    engine = engines["split"]
    prompt, completion = usage_of(engine)
    if stream:
        with client.chat.completions.create(
            model="split", messages=HELLO, n=3, stream=True, stream_options={"include_usage": True}
        ) as chunks:
            said = list(chunks)
        texts = [joined(said, choice) for choice in range(3)]
        usage = said[-1].usage
        ends = [c.index for chunk in said for c in chunk.choices if c.finish_reason == "stop"]
        assert sorted(ends) == [0, 1, 2]
    else:
        answer = client.chat.completions.create(model="split", messages=HELLO, n=3)
        assert [choice.index for choice in answer.choices] == [0, 1, 2]
        texts = [choice.message.content or "" for choice in answer.choices]
        usage = answer.usage
    assert texts == [engine.script.text] * 3
    assert counted(usage) == (prompt, 3 * completion)


@pytest.mark.parametrize("stream", [False, True])
def test_log_probabilities_come_with_every_token(
    client: OpenAI, engines: dict[str, MlxEngine], *, stream: bool
) -> None:
    engine = engines["split"]
    options: dict[str, Any] = {"model": "split", "messages": HELLO, "logprobs": True}
    if stream:
        with client.chat.completions.create(stream=True, top_logprobs=3, **options) as chunks:
            rows = [
                row
                for chunk in chunks
                for choice in chunk.choices
                if choice.logprobs
                for row in choice.logprobs.content or ()
            ]
    else:
        answer = client.chat.completions.create(top_logprobs=3, **options)
        assert answer.choices[0].logprobs is not None
        rows = list(answer.choices[0].logprobs.content or ())
    said = b"".join(bytes(row.bytes or ()) for row in rows)
    assert said.decode() == engine.script.text
    assert len(rows) == len(engine.script.ids)
    for row in rows:
        assert -0.001 < row.logprob <= 0
        assert len(row.top_logprobs) == 3
        ranked = [top.logprob for top in row.top_logprobs]
        assert ranked == sorted(ranked, reverse=True)
        assert row.top_logprobs[0].token == row.token
        assert row.top_logprobs[0].bytes == row.bytes
        assert ranked[1] < -20


def test_log_probabilities_without_alternatives(client: OpenAI) -> None:
    answer = client.chat.completions.create(
        model="tiny", messages=HELLO, logprobs=True, max_tokens=3
    )
    assert answer.choices[0].logprobs is not None
    rows = answer.choices[0].logprobs.content or []
    assert [row.top_logprobs for row in rows] == [[]] * 3


def test_a_bias_turns_the_model_away(client: OpenAI, engines: dict[str, MlxEngine]) -> None:
    engine = engines["tiny"]
    end = tokenizer_of(engine).token_to_id("<|im_end|>")
    answer = client.chat.completions.create(
        model="tiny", messages=HELLO, logit_bias={str(end): 100}
    )
    assert answer.choices[0].message.content == ""
    assert answer.choices[0].finish_reason == "stop"
    assert counted(answer.usage)[1] == 1
    forbidden = engine.script.ids[3]
    answer = client.chat.completions.create(
        model="tiny", messages=HELLO, logit_bias={str(forbidden): -100}, max_tokens=4
    )
    said = answer.choices[0].message.content or ""
    tokenizer = tokenizer_of(engine)
    assert said.startswith(tokenizer.decode(list(engine.script.ids[:3])))
    assert said != tokenizer.decode(list(engine.script.ids[:4]))


def test_how_tokens_are_drawn_can_be_chosen(client: OpenAI, engines: dict[str, MlxEngine]) -> None:
    answer = client.chat.completions.create(
        model="tiny",
        messages=HELLO,
        seed=2**40 + 1,
        temperature=1.9,
        top_p=0.9,
        frequency_penalty=0.1,
        presence_penalty=-0.1,
        user="someone",
        metadata={"purpose": "test"},
        extra_body={"top_k": 5, "min_p": 0.01, "repetition_penalty": 1.01},
    )
    assert answer.choices[0].message.content == engines["tiny"].script.text


def test_an_answer_that_was_begun_is_gone_on_with(
    client: OpenAI, engines: dict[str, MlxEngine]
) -> None:
    script = engines["tiny"].script.text
    start = tokenizer_of(engines["tiny"]).decode(list(engines["tiny"].script.ids[:4]))
    begun: list[ChatCompletionMessageParam] = [*HELLO, {"role": "assistant", "content": start}]
    answer = client.chat.completions.create(
        model="tiny",
        messages=begun,
        extra_body={"continue_final_message": True, "add_generation_prompt": False},
    )
    assert start + (answer.choices[0].message.content or "") == script


def test_messages_may_be_parts_and_the_answer_names_its_request(client: OpenAI) -> None:
    raw = client.chat.completions.with_raw_response.create(
        model="tiny",
        messages=[{"role": "user", "content": [{"type": "text", "text": "Say something."}]}],
        max_tokens=1,
        extra_headers={"x-request-id": "mine-1"},
    )
    assert raw.headers["x-request-id"] == "mine-1"
    assert raw.parse()._request_id == "mine-1"


@pytest.mark.parametrize(
    ("asked", "ignored"),
    [
        ({"response_format": {"type": "json_object"}}, "response_format"),
        (
            {"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "required"},
            "tool_choice",
        ),
    ],
)
def test_what_an_engine_without_grammars_cannot_promise_is_told(
    client: OpenAI, engines: dict[str, MlxEngine], asked: dict[str, Any], ignored: str
) -> None:
    raw = client.chat.completions.with_raw_response.create(model="tiny", messages=HELLO, **asked)
    assert raw.headers["x-smg-ignored-params"] == ignored
    assert raw.parse().choices[0].message.content == engines["tiny"].script.text
