"""What engines say of the partners they can work with, and of their ranks; garbage counts as not said."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.engines.contracts.pairing_rules import (
    RANKS_MAX,
    scheduler_pairing,
    scheduler_ranks,
    scheduler_role,
)
from smg_node.engines.disaggregation import Pairing
from smg_node.engines.engine import Contract, ModelCard
from smg_node.engines.grpc.contract_detection import WIRES
from support.engines.engine_bench import PB

SCHEDULERS = (Contract.SGLANG, Contract.TOKENSPEED)
BITS = {Contract.SGLANG: 31, Contract.TOKENSPEED: 63}


def scheduler_card(contract: Contract, **arguments: Any) -> ModelCard:
    server = PB[contract].GetServerInfoResponse()
    server.server_args.update(arguments)
    return WIRES[contract]().card(b"", server.SerializeToString())


def vllm_card(**facts: Any) -> ModelCard:
    server = PB[Contract.VLLM].GetServerInfoResponse(**facts)
    return WIRES[Contract.VLLM]().card(b"", server.SerializeToString())


@pytest.mark.parametrize("contract", list(WIRES))
def test_an_engine_that_says_nothing_does_everything_alone(contract: Contract) -> None:
    card = WIRES[contract]().card(b"", b"")
    assert (card.role, card.pairing, card.ranks) == ("regular", None, 1)


@pytest.mark.parametrize("contract", SCHEDULERS)
@pytest.mark.parametrize("role", ["prefill", "decode"])
def test_a_scheduler_started_for_one_role_says_which_and_where(
    contract: Contract, role: str
) -> None:
    card = scheduler_card(
        contract,
        disaggregation_mode=role,
        disaggregation_bootstrap_port=9100,
        disaggregation_transfer_backend="Mooncake",
    )
    assert card.role == role
    assert card.pairing == Pairing("room", "mooncake", 9100, "", BITS[contract])


@pytest.mark.parametrize("contract", SCHEDULERS)
@pytest.mark.parametrize("mode", ["null", "", None, "encoder", "PREFILLER", 3, True, ["prefill"]])
def test_a_scheduler_of_any_other_mode_does_everything_alone(
    contract: Contract, mode: object
) -> None:
    card = scheduler_card(
        contract, disaggregation_mode=mode, disaggregation_bootstrap_port=8998, dp_size=2
    )
    assert (card.role, card.pairing, card.ranks) == ("regular", None, 2)


def test_only_tokenspeed_has_a_mode_to_encode_pictures_for_others() -> None:
    said = {"disaggregation_mode": "encode", "disaggregation_bootstrap_port": 18995}
    card = scheduler_card(Contract.TOKENSPEED, **said)
    assert (card.role, card.pairing) == ("encode", Pairing("room", "", 18995, "", 63))
    card = scheduler_card(Contract.SGLANG, **said)
    assert (card.role, card.pairing) == ("regular", None)


@pytest.mark.parametrize("contract", SCHEDULERS)
@pytest.mark.parametrize("port", [None, 0, -1, 65536, 8998.5, "8998", True, float("inf")])
def test_a_port_that_is_none_is_not_said(contract: Contract, port: object) -> None:
    card = scheduler_card(
        contract, disaggregation_mode="prefill", disaggregation_bootstrap_port=port
    )
    assert card.pairing == Pairing("room", "", None, "", BITS[contract])


@pytest.mark.parametrize("contract", SCHEDULERS)
def test_the_operators_word_for_who_fits_replaces_the_transfer(contract: Contract) -> None:
    said = {"disaggregation_mode": "decode", "disaggregation_transfer_backend": "nixl"}
    for word, group in (("Rack-7", "Rack-7"), ("  ", "nixl"), (None, "nixl"), (7, "nixl")):
        card = scheduler_card(contract, **said, pairing_protocol=word)
        assert card.pairing is not None
        assert card.pairing.group == group


@pytest.mark.parametrize("contract", SCHEDULERS)
@pytest.mark.parametrize(
    ("sizes", "ranks"),
    [
        ({"dp_size": 8}, 8),
        ({"dp_size": 1, "attn_dp_size": 8}, 8),
        ({"dp_size": None, "attn_dp_size": 4}, 4),
        ({"dp_size": RANKS_MAX}, RANKS_MAX),
        ({"dp_size": RANKS_MAX + 1}, 1),
        ({"dp_size": RANKS_MAX, "attn_dp_size": 2}, 1),
        ({"dp_size": 2**52, "attn_dp_size": 2**52}, 1),
        ({"dp_size": 0}, 1),
        ({"dp_size": -2, "attn_dp_size": -2}, 1),
        ({"dp_size": 1.5}, 1),
        ({"dp_size": "8"}, 1),
        ({"dp_size": True}, 1),
    ],
)
def test_ranks_of_a_scheduler(contract: Contract, sizes: dict[str, object], ranks: int) -> None:
    assert scheduler_card(contract, **sizes).ranks == ranks


@pytest.mark.parametrize(
    ("connector", "style"),
    [
        ("NixlConnector", "nixl"),
        ("NixlPushConnector", "nixl"),
        ("MooncakeConnector", "minted"),
        ("MooncakeStoreConnector", "store"),
        ("LMCacheConnectorV1", "store"),
        ("nixlconnector", "store"),  # another class: names are compared as they are
    ],
)
def test_a_connector_decides_how_vllm_hands_over(connector: str, style: str) -> None:
    card = vllm_card(kv_connector=connector, kv_role="kv_both", kv_engine_id="e-1")
    assert card.role == "regular"
    assert card.pairing is not None
    assert (card.pairing.style, card.pairing.bootstrap_port) == (style, None)
    assert card.pairing.engine_id == ("e-1" if style == "minted" else "")


@pytest.mark.parametrize("connector", ["", "  ", "MoRIIOConnector"])
@pytest.mark.parametrize("role", ["", "kv_producer", "kv_consumer", "kv_both"])
def test_a_vllm_without_a_connector_that_can_be_served_is_regular(
    connector: str, role: str
) -> None:
    card = vllm_card(kv_connector=connector, kv_role=role, pairing_protocol="rack")
    assert (card.role, card.pairing) == ("regular", None)


@pytest.mark.parametrize(
    ("said", "role"),
    [
        ("kv_producer", "prefill"),
        ("kv_consumer", "decode"),
        ("kv_both", "regular"),
        ("", "regular"),
        ("KV_PRODUCER", "regular"),
    ],
)
def test_vllms_role_is_its_connectors(said: str, role: str) -> None:
    assert vllm_card(kv_connector="NixlConnector", kv_role=said).role == role


def test_vllms_that_share_connector_and_layout_can_be_paired() -> None:
    def group(**facts: Any) -> str:
        pairing = vllm_card(kv_connector="NixlConnector", **facts).pairing
        assert pairing is not None
        return pairing.group

    layout = {"kv_cache_dtype": "auto", "block_size": 32, "model_dtype": "torch.bfloat16"}
    whole = group(**layout)
    assert whole == "NixlConnector kv_cache_dtype=auto block_size=32 model_dtype=torch.bfloat16"
    assert group(**layout, attention_backend="FLASH_ATTN", kv_role="kv_consumer") == whole
    others = [group(**{**layout, name: type(value)()}) for name, value in layout.items()]
    others += [group(**{**layout, "block_size": 16}), group()]
    assert len({whole, *others}) == 6  # what is left out is not the same as what is said
    assert group() == "NixlConnector"
    assert group(block_size=-1) == "NixlConnector"


def test_the_operators_word_pairs_vllms_of_any_layout() -> None:
    for facts in ({"block_size": 16}, {"block_size": 32, "kv_cache_dtype": "fp8"}):
        pairing = vllm_card(
            kv_connector="NixlConnector", pairing_protocol=" rack-7 ", **facts
        ).pairing
        assert pairing == Pairing("nixl", "rack-7")


@pytest.mark.parametrize(
    ("said", "ranks"), [(0, 1), (1, 1), (4, 4), (-3, 1), (RANKS_MAX, RANKS_MAX), (2**31 - 1, 1)]
)
def test_ranks_of_vllm(said: int, ranks: int) -> None:
    assert vllm_card(data_parallel_size=said).ranks == ranks


def test_engines_without_words_for_it_never_pair() -> None:
    for contract in (Contract.MLX, Contract.TRTLLM):
        server = PB[contract].GetServerInfoResponse()
        card = WIRES[contract]().card(b"", server.SerializeToString())
        assert (card.role, card.pairing, card.ranks) == ("regular", None, 1)


LOOSE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
NAMES = (
    "disaggregation_mode",
    "disaggregation_bootstrap_port",
    "disaggregation_transfer_backend",
    "pairing_protocol",
    "dp_size",
    "attn_dp_size",
)


@given(
    st.dictionaries(st.sampled_from(NAMES), LOOSE),
    st.sampled_from(["prefill", "decode", "null", None]),
)
def test_any_arguments_give_a_role_a_pairing_and_a_number_of_ranks(
    arguments: dict[str, object], mode: str | None
) -> None:
    if mode is not None:
        arguments["disaggregation_mode"] = mode
    role, pairing = scheduler_role(arguments), scheduler_pairing(arguments)
    assert (pairing is None) == (role == "regular")
    assert mode not in ("prefill", "decode") or role == mode
    assert 1 <= scheduler_ranks(arguments) <= RANKS_MAX
    if pairing is not None and pairing.bootstrap_port is not None:
        assert 1 <= pairing.bootstrap_port <= 65535
