"""Embeddings made by engines over gRPC."""

import asyncio
from array import array
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import TextPrompt, TokenPrompt, token_ids
from smg_node.engines.engine import Embedded, EmbedRequest
from smg_node.pipeline.embeddings import AT_ONCE_MAX, Vectors
from smg_node.pipeline.prompt.preparation import PROMPTS_A_ROUND
from support.engines.fake_engine import FakeEngine, abilities, card
from support.engines.relay_bench import RelayBench, relay_bench


def engine(**changes: object) -> FakeEngine:
    one = FakeEngine()
    one.abilities = replace(abilities(), embeds=True)
    one.model_card = card(**changes) if changes else one.model_card  # type: ignore[arg-type]  # fields of a card
    return one


def vectors(b: RelayBench, *texts: str) -> Awaitable[Vectors]:
    prompts = [TextPrompt(text, add_special_tokens=False) for text in texts]
    return b.embedder.start("tiny", prompts, b.context()).vectors()


async def test_every_input_has_its_vector_in_order(tmp_path: Path) -> None:
    one = engine()
    async with relay_bench(tmp_path, engines={"e": one}) as b:
        found = await vectors(b, "a", "bcd", "ef")
        assert [array("f", vector).tolist()[0] for vector in found.vectors] == [1, 3, 2]
        assert (found.model, found.prompt_tokens) == ("tiny", 6)
        assert len({request.request_id for request in one.embedded}) == 3
        [outcome] = b.outcomes
        assert (outcome.kind, outcome.dialect, outcome.prompt_tokens) == ("ok", "embeddings", 6)
        assert b.idle()


async def test_a_call_that_breaks_is_made_elsewhere(tmp_path: Path) -> None:
    failing, good = engine(), engine()
    failing.embed_error = SmgError(ErrorKind.UPSTREAM_FAILED, "broken")
    async with relay_bench(tmp_path, engines={"a": failing, "b": good}) as b:
        found = await vectors(b, "a", "b")
        assert len(found.vectors) == 2
        assert failing.embedded
        assert b.outcomes[0].attempts == 2


async def test_one_failure_ends_the_whole_and_frees_every_place(tmp_path: Path) -> None:
    one = engine()

    async def embed(request: EmbedRequest) -> Embedded:
        if len(request.ids) == 3:
            raise SmgError(ErrorKind.INVALID_REQUEST, "not that")
        await asyncio.sleep(30)
        raise AssertionError("it is cancelled")

    one.embed = embed  # type: ignore[method-assign]  # a test's own engine
    async with relay_bench(tmp_path, engines={"e": one}) as b:
        with pytest.raises(SmgError, match="not that"):
            await vectors(b, "a", "bcd", "ef")
        assert b.idle()
        assert b.outcomes[0].kind == "refused"


@pytest.mark.parametrize(
    ("server", "code"),
    [
        ({"is_matryoshka": "false"}, "unsupported_parameter"),
        ({"matryoshka_dimensions": "64"}, "invalid_value"),
    ],
)
async def test_shorter_vectors_are_refused_where_the_metadata_of_a_worker_forbids_them(
    tmp_path: Path, server: dict[str, str], code: str
) -> None:
    one = engine(server=server)
    async with relay_bench(tmp_path, engines={"e": one}) as b:
        prompts = [TextPrompt("a")]
        with pytest.raises(SmgError) as caught:
            await b.embedder.start("tiny", prompts, b.context(), dimensions=1).vectors()
        assert (caught.value.where, caught.value.code) == ("dimensions", code)
        assert not one.embedded
        assert b.idle()


async def test_more_dimensions_than_there_are_end_the_request(tmp_path: Path) -> None:
    one = engine()
    async with relay_bench(tmp_path, engines={"e": one}) as b:
        prompts = [TextPrompt("a"), TextPrompt("b")]
        with pytest.raises(SmgError) as caught:
            await b.embedder.start("tiny", prompts, b.context(), dimensions=99).vectors()
        assert (caught.value.where, caught.value.status) == ("dimensions", 400)
        assert b.idle()


async def test_engines_that_do_not_embed_are_not_asked(tmp_path: Path) -> None:
    mute, able = FakeEngine(), engine()
    async with relay_bench(tmp_path, engines={"a": mute, "b": able}) as b:
        for _ in range(3):
            await vectors(b, "a")
        assert not mute.embedded
    async with relay_bench(tmp_path, engines={"a": mute}) as b:
        with pytest.raises(SmgError) as caught:
            await vectors(b, "a")
        assert (caught.value.status, caught.value.code) == (501, "not_implemented")


async def test_what_no_engine_should_be_sent_is_refused_before(tmp_path: Path) -> None:
    one = engine(context=8)
    async with relay_bench(tmp_path, engines={"e": one}) as b:
        with pytest.raises(SmgError) as caught:
            await vectors(b, "123456789")
        assert caught.value.code == "context_length_exceeded"
        with pytest.raises(SmgError, match="empty"):
            await vectors(b, "")
        beyond = TokenPrompt(token_ids([5, 9_999]), "input[0]")
        with pytest.raises(SmgError, match="outside the vocabulary"):
            await b.embedder.start("tiny", [beyond], b.context()).vectors()
        assert not one.embedded
        assert not b.embedder.takes("nobody")


async def test_many_inputs_are_looked_at_some_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = engine(context=64)
    rounds = [0]
    begun: list[int] = []

    async def count() -> None:
        while True:
            rounds[0] += 1
            await asyncio.sleep(0)

    async with relay_bench(tmp_path, engines={"e": one}) as b:
        before = one.embed

        async def embed(request: EmbedRequest) -> Embedded:
            begun.append(rounds[0])
            return await before(request)

        monkeypatch.setattr(one, "embed", embed)
        prompts = [TokenPrompt(token_ids([at % 9 + 1]), f"input[{at}]") for at in range(500)]
        async with asyncio.TaskGroup() as group:
            counting = group.create_task(count())
            found = await b.embedder.start("tiny", prompts, b.context()).vectors()
            counting.cancel()
        assert len(found.vectors) == len(begun) == 500
        assert max(begun.count(each) for each in set(begun)) <= PROMPTS_A_ROUND + AT_ONCE_MAX
