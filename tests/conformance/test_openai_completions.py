"""Completions, models and their lists through the official client."""

from typing import Any

import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types import CompletionChoice
from tokenizers import Tokenizer

from support.models.tiny_tokenizer import token_bytes
from support.processes.mlx_engine import MlxEngine

pytestmark = pytest.mark.conformance

# A line break is in no script, so the script starts after it.
PROMPT = "Say something:\n"
ENOUGH = 500


def tokenizer_of(engine: MlxEngine) -> Tokenizer:
    return Tokenizer.from_file(str(engine.model_dir / "tokenizer.json"))


def encoded(engine: MlxEngine, prompt: str = PROMPT) -> list[int]:
    return list(tokenizer_of(engine).encode(prompt).ids)


def by_index(choices: list[CompletionChoice]) -> list[str]:
    assert [choice.index for choice in choices] == list(range(len(choices)))
    return [choice.text for choice in choices]


@pytest.mark.parametrize("model", ["tiny", "split"])
def test_a_completion_is_the_script(
    client: OpenAI, engines: dict[str, MlxEngine], model: str
) -> None:
    engine = engines[model]
    answer = client.completions.create(model=model, prompt=PROMPT, max_tokens=ENOUGH)
    assert by_index(answer.choices) == [engine.script.text]
    assert answer.choices[0].finish_reason == "stop"
    assert (answer.object, answer.model) == ("text_completion", model)
    assert answer.id.startswith("cmpl-")
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == len(encoded(engine))
    assert answer.usage.completion_tokens == len(engine.script.ids) + 1


async def test_a_streamed_completion_is_the_script(
    async_client: AsyncOpenAI, engines: dict[str, MlxEngine]
) -> None:
    stream = await async_client.completions.create(
        model="split",
        prompt=PROMPT,
        max_tokens=ENOUGH,
        stream=True,
        stream_options={"include_usage": True},
    )
    async with stream:
        *chunks, last = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].text for chunk in chunks) == engines["split"].script.text
    assert not any("\ufffd" in chunk.choices[0].text for chunk in chunks)
    assert {chunk.object for chunk in chunks} == {"text_completion"}
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert last.choices == []
    assert last.usage is not None
    assert last.usage.completion_tokens == len(engines["split"].script.ids) + 1


def test_sixteen_tokens_are_what_one_gets_without_asking(
    client: OpenAI, engines: dict[str, MlxEngine]
) -> None:
    answer = client.completions.create(model="tiny", prompt=PROMPT)
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 16
    assert answer.choices[0].finish_reason == "length"
    first = list(engines["tiny"].script.ids[:16])
    assert answer.choices[0].text == tokenizer_of(engines["tiny"]).decode(first)


def test_a_prompt_may_be_token_ids(client: OpenAI, engines: dict[str, MlxEngine]) -> None:
    engine = engines["tiny"]
    inside = list(engine.script.ids[:5])
    for prompt, start in ((encoded(engine), 0), (inside, 5)):
        answer = client.completions.create(model="tiny", prompt=prompt, max_tokens=ENOUGH)
        rest = tokenizer_of(engine).decode(list(engine.script.ids[start:]))
        assert answer.choices[0].text == rest
        assert answer.usage is not None
        assert answer.usage.prompt_tokens == len(prompt)


def test_many_prompts_have_an_answer_each_in_their_order(
    client: OpenAI, engines: dict[str, MlxEngine]
) -> None:
    engine = engines["tiny"]
    tokenizer = tokenizer_of(engine)
    starts = (0, 3, 9)
    ids = [list(engine.script.ids[:start]) or encoded(engine) for start in starts]
    rests = [tokenizer.decode(list(engine.script.ids[start:])) for start in starts]
    answer = client.completions.create(model="tiny", prompt=ids, max_tokens=ENOUGH)
    assert by_index(answer.choices) == rests
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == sum(map(len, ids))

    texts = [PROMPT, "Another:\n"]
    answer = client.completions.create(model="tiny", prompt=texts, n=2, max_tokens=ENOUGH)
    assert by_index(answer.choices) == [engine.script.text] * 4
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == sum(len(encoded(engine, text)) for text in texts)
    assert answer.usage.completion_tokens == 4 * (len(engine.script.ids) + 1)


@pytest.mark.parametrize("stream", [False, True])
def test_an_echo_stands_before_the_answer(
    client: OpenAI, engines: dict[str, MlxEngine], *, stream: bool
) -> None:
    options: dict[str, Any] = {
        "model": "tiny",
        "prompt": PROMPT,
        "max_tokens": ENOUGH,
        "echo": True,
    }
    if stream:
        with client.completions.create(stream=True, **options) as chunks:
            said = "".join(chunk.choices[0].text for chunk in chunks)
    else:
        said = client.completions.create(**options).choices[0].text
    assert said == PROMPT + engines["tiny"].script.text


def test_log_probabilities_have_the_old_shape(
    client: OpenAI, engines: dict[str, MlxEngine]
) -> None:
    engine = engines["tiny"]
    answer = client.completions.create(model="tiny", prompt=PROMPT, max_tokens=ENOUGH, logprobs=2)
    rows = answer.choices[0].logprobs
    assert rows is not None
    assert answer.usage is not None
    # A row for each token that usage counts, the last one too, which ends the text.
    count = answer.usage.completion_tokens
    assert count == len(engine.script.ids) + 1
    assert rows.tokens is not None
    assert rows.token_logprobs is not None
    assert rows.top_logprobs is not None
    assert rows.text_offset is not None
    assert len(rows.tokens) == len(rows.token_logprobs) == count
    assert len(rows.top_logprobs) == len(rows.text_offset) == count
    assert all(-0.001 < value <= 0 for value in rows.token_logprobs)
    assert all(1 <= len(top) <= 2 for top in rows.top_logprobs)
    assert rows.text_offset[0] == 0
    assert rows.text_offset == sorted(rows.text_offset)
    tokenizer = tokenizer_of(engine)
    whole = [token_bytes(tokenizer, i) for i in engine.script.ids[:5]]
    assert rows.tokens[:5] == [raw.decode() for raw in whole]
    assert rows.text_offset[4] == len(b"".join(whole[:4]).decode())


def test_a_stop_string_ends_a_completion(client: OpenAI, engines: dict[str, MlxEngine]) -> None:
    answer = client.completions.create(
        model="tiny", prompt=PROMPT, max_tokens=ENOUGH, stop="llama says"
    )
    assert answer.choices[0].text == engines["tiny"].script.text.split("llama says")[0]
    assert answer.choices[0].finish_reason == "stop"


def test_a_bias_ends_a_completion_at_once(client: OpenAI, engines: dict[str, MlxEngine]) -> None:
    end = tokenizer_of(engines["tiny"]).token_to_id("<|im_end|>")
    answer = client.completions.create(model="tiny", prompt=PROMPT, logit_bias={str(end): 100})
    assert answer.choices[0].text == ""
    assert answer.choices[0].finish_reason == "stop"


async def test_models_are_listed_and_found(async_client: AsyncOpenAI) -> None:
    models = [model async for model in async_client.models.list()]
    assert [model.id for model in models] == ["endless", "split", "tiny"]
    for model in models:
        assert model.object == "model"
        assert model.created > 1_500_000_000
        assert await async_client.models.retrieve(model.id) == model
