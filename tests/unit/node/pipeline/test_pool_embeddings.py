"""Vectors from the cluster's own models: engines over gRPC and HTTP workers, and answers that are none."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from smg_node.core.context_limit import TOO_LONG_CODE
from smg_node.core.errors import SmgError
from smg_node.engines.http.transport import HttpCall
from smg_node.pipeline.pool_embeddings import PoolEmbeddings
from support.engines.fake_engine import FakeEngine, abilities
from support.engines.relay_bench import RelayBench, Told, relay_bench, told, worker


def pool(b: RelayBench) -> PoolEmbeddings:
    return PoolEmbeddings(b.embedder, b.relays)


def rows(*vectors: tuple[int, Any]) -> Told:
    return told({"data": [{"index": at, "embedding": vector} for at, vector in vectors]})


async def test_engines_give_vectors(tmp_path: Path) -> None:
    one = FakeEngine()
    one.abilities = replace(abilities(), embeds=True)
    async with relay_bench(tmp_path, engines={"e": one}) as b:
        found = await pool(b)("tiny", ["a", "bcd"], b.context())
        assert [vector[0] for vector in found] == [2, 4]
        assert b.idle()


async def test_http_workers_give_vectors_in_the_order_of_the_texts(tmp_path: Path) -> None:
    asked: list[Any] = []

    def says(call: HttpCall) -> Told:
        asked.append((call.path, json.loads(call.body)))
        return rows((1, [0.5, 1]), (0, [2, 4]))

    async with relay_bench(tmp_path, w=worker(says)) as b:
        found = await pool(b)("m", ["a", "b"], b.context())
        assert [list(vector) for vector in found] == [[2, 4], [0.5, 1]]
        assert b.idle()
    ((path, body),) = asked
    assert path == "/v1/embeddings"
    assert (body["input"], body["encoding_format"]) == (["a", "b"], "float")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Told((b"nonsense",)), "no object of JSON"),
        (told({"data": [{"index": 0, "embedding": "AAAA"}]}), "no list of embeddings"),
        (rows((0, [1.0])), "not one embedding for each of 2 texts"),
        (rows((0, [1.0]), (0, [1.0])), "not one embedding for each of 2 texts"),
    ],
)
async def test_an_answer_that_is_none_is_an_error(tmp_path: Path, answer: Told, why: str) -> None:
    async with relay_bench(tmp_path, w=worker(lambda _call: answer)) as b:
        with pytest.raises(SmgError, match=why):
            await pool(b)("m", ["a", "b"], b.context())
        assert b.idle()


async def test_a_text_that_is_too_long_is_told_from_other_errors(tmp_path: Path) -> None:
    words = "This model's maximum context length is 512 tokens, however you requested 900 tokens"
    for message, code in ((words, TOO_LONG_CODE), ("odd input", "upstream_refused")):
        answer = told({"error": {"message": message, "code": 400}}, 400)

        def says(_call: HttpCall, answer: Told = answer) -> Told:
            return answer

        async with relay_bench(tmp_path, w=worker(says)) as b:
            with pytest.raises(SmgError) as caught:
                await pool(b)("m", ["a"], b.context())
        assert caught.value.code == code


async def test_a_model_that_nobody_serves_is_an_error(tmp_path: Path) -> None:
    async with relay_bench(tmp_path, engines={"e": FakeEngine()}) as b:
        with pytest.raises(SmgError) as caught:
            await pool(b)("nothing", ["a"], b.context())
        assert caught.value.code == "model_not_found"


async def test_an_engine_stands_in_where_no_http_worker_has_the_api(tmp_path: Path) -> None:
    one = FakeEngine()
    one.abilities = replace(abilities(), embeds=True)
    missing = worker(lambda _call: told({"detail": "Not Found"}, 404), name="tiny")
    async with relay_bench(tmp_path, engines={"e": one}, w=missing) as b:
        for _ in range(2):
            found = await pool(b)("tiny", ["a"], b.context())
            assert found[0][0] == 2
        assert len(one.embedded) == 2
        assert b.idle()
