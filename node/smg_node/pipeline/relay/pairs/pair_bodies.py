"""Pair bodies: the requests to the two workers of a pair, and the prefill worker's answer. Pure.

    room                  both get the request, with the address where they meet; the prefill worker's answer is
                          one token, which it passes on with the blocks
    nixl, minted, store   the prefill worker is asked for one token, which is dropped; the decode worker gets the
                          request, with the fields of the hand-over

Only fields that the client did not set are put in, and no field of the client is lost on the worker
that answers.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.contracts import kv_transfer as transfer
from smg_node.engines.engine import Prefilled
from smg_node.pipeline.pairs.engine_pair import Partners
from smg_node.pipeline.relay.relay_request import Relayable
from smg_node.pipeline.relay.response_filter import UsageReader

ANSWER_MAX_BYTES: Final = transfer.TRANSFER_MAX_BYTES + 1_048_576
"""What a worker may say beside what it says to its partner; its answer is one word."""
RANK: Final = "data_parallel_rank"
"""What SGLang, the one server that says over HTTP how many ranks it has, calls the rank a request is for."""
_STREAMING: Final = ("stream_options",)
_OF_THE_ANSWER: Final = (
    "stream_options",
    # What may end an answer before its first word is over: some hand-overs are only made if its length ended it.
    "min_tokens",
    "stop",
    "stop_token_ids",
    # What an answer must look like, or is to tell beside itself.
    "echo",
    "guided_choice",
    "guided_grammar",
    "guided_json",
    "guided_regex",
    "logprobs",
    "structured_outputs",
    "top_logprobs",
)
"""Fields that change nothing about the prompt, and stand in the way of an answer of one word.

Others may be part of the prompt for all that is known here (`response_format`, `tool_choice`): they stay, because
blocks of another prompt would be handed over.
"""


class _Answer(msgspec.Struct):
    kv_transfer_params: msgspec.Raw = msgspec.Raw(b"null")


_decode: Final = msgspec.json.Decoder(_Answer).decode


def of_prefill(asked: Relayable, name: str, partners: Partners) -> bytes:
    """Return the body for the prefill worker, which calls the model `name`."""
    rank = on_rank(partners.prefill_rank)
    if partners.style == "room":
        plain = {"stream": False} if asked.streamed else {}
        return asked.body(name, {**_room(partners), **plain, **rank}, without=_STREAMING)
    lengths = {
        "max_tokens": 1,
        **({"max_completion_tokens": 1} if "max_completion_tokens" in asked.fields else {}),
    }
    told = _transfer(transfer.of_prefill(partners.style, partners.number))
    more = {**lengths, "ignore_eos": True, "stream": False, **told, **rank}
    return asked.body(name, more, without=_OF_THE_ANSWER)


def of_decode(asked: Relayable, name: str, partners: Partners, found: Prefilled | None) -> bytes:
    """Return the body for the decode worker; `found` is the prefill worker's result, None where
    both are called at once.
    """
    rank = on_rank(partners.decode_rank)
    if partners.style == "room":
        return asked.body(name, {**_room(partners), **rank})
    assert found is not None, "the second one is asked when the first one is done"
    told = transfer.of_decode(
        partners.style,
        partners.number,
        engine_id=partners.engine_id,
        host=partners.host,
        port=partners.port,
        found=found.transfer,
    )
    return asked.body(name, {**_transfer(told), **rank})


def on_rank(rank: int | None) -> Mapping[str, object]:
    """Return the field that addresses a rank; none where its worker has one rank, or chooses."""
    return {} if rank is None else {RANK: rank}


def prefilled(answer: bytes) -> Prefilled:
    """Return the result in the prefill worker's answer; UPSTREAM_FAILED if there is none."""
    try:
        told = _decode(answer).kv_transfer_params
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SmgError(
            ErrorKind.UPSTREAM_FAILED, "the worker's answer to the prompt is no object of JSON"
        ) from error
    usage = UsageReader()
    usage.feed(answer)
    return Prefilled(
        usage.prompt_tokens or -1,
        usage.cached_tokens if usage.tells_cached else -1,
        transfer="" if bytes(told) == b"null" else transfer.checked(bytes(told).decode()),
    )


def _room(partners: Partners) -> Mapping[str, object]:
    return {
        "bootstrap_host": partners.host,
        "bootstrap_port": partners.port,
        "bootstrap_room": partners.number,
    }


def _transfer(told: str) -> Mapping[str, object]:
    return {"kv_transfer_params": msgspec.Raw(told.encode())} if told else {}
