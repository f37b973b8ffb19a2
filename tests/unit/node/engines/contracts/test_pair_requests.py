"""What an engine is told of its partner and its rank: the exact fields of each contract's request."""

from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from msgspec.structs import replace

from smg_node.core.generation.request import Sampling, token_ids
from smg_node.engines.contracts.tokenspeed import ROOM_BITS as TOKENSPEED_ROOM_BITS
from smg_node.engines.disaggregation import ROOM_BITS, Room
from smg_node.engines.engine import Contract, EngineRequest
from smg_node.engines.grpc.contract_detection import WIRES
from support.engines.engine_bench import PB

PLAIN = EngineRequest("smg-1", token_ids([5, 6]), Sampling(max_tokens=1), stream=True, timeout_s=9)
ROOM = Room("10.0.0.7", 8998, 2**31 - 1)
RANKED = (Contract.SGLANG, Contract.VLLM, Contract.TOKENSPEED)


def added(contract: Contract, **wishes: Any) -> dict[str, Any]:
    """Return the fields of a request that a plain one of the same words has not."""
    wire, kind = WIRES[contract](), PB[contract].GenerateRequest
    said, plain = (
        MessageToDict(
            kind.FromString(wire.generate(one, bias_width=None)), preserving_proto_field_name=True
        )
        for one in (replace(PLAIN, **wishes), PLAIN)
    )
    assert plain.items() <= said.items()
    return {name: value for name, value in said.items() if name not in plain}


def test_sglang_is_told_where_the_room_is() -> None:
    assert added(Contract.SGLANG, room=ROOM) == {
        "disaggregated_params": {
            "bootstrap_host": "10.0.0.7",
            "bootstrap_port": 8998,
            "bootstrap_room": 2**31 - 1,
        }
    }


def test_tokenspeeds_rooms_have_longer_numbers() -> None:
    number = 2**TOKENSPEED_ROOM_BITS - 1
    assert added(Contract.TOKENSPEED, room=Room("p", 1, number)) == {
        "kv_bootstrap_info": {
            "bootstrap_host": "p",
            "bootstrap_port": 1,
            "bootstrap_room": str(number),
        }
    }


def test_room_number_zero_is_a_room() -> None:
    for contract, name in (
        (Contract.SGLANG, "disaggregated_params"),
        (Contract.TOKENSPEED, "kv_bootstrap_info"),
    ):
        said = added(contract, room=Room("p", 8998, 0))
        assert said == {name: {"bootstrap_host": "p", "bootstrap_port": 8998}}


@pytest.mark.parametrize(
    ("contract", "bits"), [(Contract.SGLANG, ROOM_BITS), (Contract.TOKENSPEED, 63)]
)
def test_a_room_number_of_one_bit_more_than_a_card_allows_has_no_field(
    contract: Contract, bits: int
) -> None:
    with pytest.raises(ValueError, match="range"):
        added(contract, room=Room("p", 8998, 2**bits))


@pytest.mark.parametrize(
    "text", ['{"do_remote_decode":true}', '{ "x" : [1, {"é": null}] }', "{}", "[not even JSON"]
)
def test_vllm_is_told_word_for_word_what_its_partner_said(text: str) -> None:
    assert added(Contract.VLLM, transfer=text) == {"kv_transfer_params_json": text}


@pytest.mark.parametrize("contract", RANKED)
@pytest.mark.parametrize("rank", [0, 1, 255])
def test_rank_zero_is_a_rank(contract: Contract, rank: int) -> None:
    assert added(contract, rank=rank) == {"data_parallel_rank": rank}


@pytest.mark.parametrize("contract", list(WIRES))
def test_nothing_is_said_of_partners_where_there_is_none(contract: Contract) -> None:
    message = PB[contract].GenerateRequest.FromString(
        WIRES[contract]().generate(PLAIN, bias_width=None)
    )
    set_fields = {field.name for field, _ in message.ListFields()}
    assert not set_fields & {
        "data_parallel_rank",
        "disaggregated_params",
        "kv_bootstrap_info",
        "kv_transfer_params",
        "kv_transfer_params_json",
    }


@pytest.mark.parametrize("contract", list(WIRES))
def test_no_contract_is_asked_for_what_it_has_no_words_for(contract: Contract) -> None:
    served = {
        Contract.SGLANG: {"room", "rank"},
        Contract.TOKENSPEED: {"room", "rank"},
        Contract.VLLM: {"transfer", "rank"},
    }.get(contract, set())
    wishes: dict[str, Any] = {"room": ROOM, "transfer": "{}", "rank": 0}
    for name, value in wishes.items():
        if name in served:
            assert added(contract, **{name: value})
        else:
            with pytest.raises(AssertionError):
                added(contract, **{name: value})


@pytest.mark.parametrize("contract", list(WIRES))
def test_which_fields_there_are_is_what_the_contract_says(contract: Contract) -> None:
    fields = PB[contract].GenerateRequest.DESCRIPTOR.fields_by_name
    assert (contract in RANKED) is ("data_parallel_rank" in fields)
    if contract in RANKED:
        assert fields["data_parallel_rank"].has_presence
    answer = PB[contract].GenerateComplete.DESCRIPTOR.fields_by_name
    assert (contract is Contract.VLLM) is ("kv_transfer_params_json" in answer)
