"""Embeddings over gRPC: the two contracts that have them, and those that do not."""

from array import array

import grpc
import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import token_ids
from smg_node.engines.engine import Contract, EmbedRequest
from smg_node.engines.grpc.contract_detection import WIRES
from support.engines.engine_bench import GENEROUS_S, bench
from support.engines.engine_server import RefusalError

ABLE = [Contract.VLLM, Contract.SGLANG]
REQUEST = EmbedRequest("eng-1", token_ids([5, 6, 7]), GENEROUS_S, {"traceparent": "00-1"})


@pytest.mark.parametrize("contract", ABLE)
async def test_ids_go_there_and_floats_come_back(contract: Contract) -> None:
    async with bench(contract) as b:
        answer = b.pb.EmbedResponse(embedding=[0.5, -2.0], prompt_tokens=3, embedding_dim=2)
        b.server.unary[b.path("Embed")] = lambda _: answer.SerializeToString()
        found = await b.engine.embed(REQUEST)
        assert array("f", found.vector).tolist() == [0.5, -2.0]
        assert found.prompt_tokens == 3
        [call] = b.server.calls
    sent = b.pb.EmbedRequest.FromString(call.request)
    assert (sent.request_id, list(sent.tokenized.input_ids)) == ("eng-1", [5, 6, 7])


@pytest.mark.parametrize("contract", ABLE)
@pytest.mark.parametrize("answer", [b"", b"\xff\xff\xff"])
async def test_an_empty_or_broken_answer_is_a_failure(contract: Contract, answer: bytes) -> None:
    async with bench(contract) as b:
        b.server.unary[b.path("Embed")] = lambda _: answer
        with pytest.raises(SmgError) as caught:
            await b.engine.embed(REQUEST)
    assert caught.value.kind is ErrorKind.UPSTREAM_FAILED


async def test_an_engine_that_refuses_is_heard_and_one_without_the_rpc_too() -> None:
    def refused(_: bytes) -> bytes:
        raise RefusalError(grpc.StatusCode.INVALID_ARGUMENT, "too long")

    async with bench() as b:
        with pytest.raises(SmgError) as caught:
            await b.engine.embed(REQUEST)
        assert caught.value.status == 501
        b.server.unary[b.path("Embed")] = refused
        with pytest.raises(SmgError, match="too long"):
            await b.engine.embed(REQUEST)
        await b.engine.close()
        with pytest.raises(SmgError) as caught:
            await b.engine.embed(REQUEST)
        assert caught.value.code == "worker_removed"


@pytest.mark.parametrize("contract", [one for one in WIRES if one not in ABLE])
async def test_a_contract_without_it_says_so_and_calls_nobody(contract: Contract) -> None:
    async with bench(contract) as b:
        assert not b.engine.abilities.embeds
        with pytest.raises(SmgError) as caught:
            await b.engine.embed(REQUEST)
        assert caught.value.status == 501
        assert not b.server.calls
