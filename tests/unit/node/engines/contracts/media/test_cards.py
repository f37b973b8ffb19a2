"""What an engine says of pictures, as each contract says it; what it does not say is false or unknown."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from smg_grpc_proto.generated import common_pb2

from smg_node.engines.contracts.media.cards import float_dtype, item_limits
from smg_node.engines.engine import Contract, MediaCard
from smg_node.engines.grpc.contract_detection import WIRES
from support.engines.engine_bench import PB


def card(contract: Contract, model: dict[str, Any], server: dict[str, Any]) -> MediaCard | None:
    pb = PB[contract]
    arguments = {
        name: server.pop(name) for name in ("server_args", "scheduler_info") if name in server
    }
    process = pb.GetServerInfoResponse(**server)
    for name, values in arguments.items():
        getattr(process, name).update(values)
    about = pb.GetModelInfoResponse(**model)
    return WIRES[contract]().card(about.SerializeToString(), process.SerializeToString()).media


def test_vllm_says_nearly_everything() -> None:
    found = card(
        Contract.VLLM,
        {"supports_vision": True},
        {
            "mm_device_do_normalize": True,
            "multimodal_encoder_dtype": "bfloat16",
            "model_dtype": "torch.float16",
            "mm_item_limits": "image=8,video=1,hologram=2,image=x",
            "mm_encoder_budget": 16384,
            "shm_namespace_id": "boot:22",
            "mm_processor": "inprocess",
            "mm_media_ref_schemes": "http,https, data",
        },
    )
    assert found == MediaCard(
        ways=frozenset({"tensors", "references"}),
        device_normalizes=True,
        dtype="bfloat16",
        items_max={"image": 8, "video": 1},
        tokens_max=16384,
        shared_memory="boot:22",
        schemes=frozenset({"http", "https", "data"}),
    )


def test_an_older_vllm_gets_floats_in_the_message() -> None:
    found = card(Contract.VLLM, {"supports_vision": True}, {"model_dtype": "torch.bfloat16"})
    assert found == MediaCard(ways=frozenset({"tensors"}), dtype="bfloat16")
    bare = card(Contract.VLLM, {"supports_vision": True}, {})
    assert bare == MediaCard(ways=frozenset({"tensors"}), dtype="float32")


@pytest.mark.parametrize("contract", [Contract.VLLM, Contract.SGLANG, Contract.TOKENSPEED])
def test_an_engine_started_for_text_only_takes_no_pictures(contract: Contract) -> None:
    assert card(contract, {}, {}) is None


def test_sglang_takes_images_in_the_message() -> None:
    found = card(Contract.SGLANG, {"supports_vision": True}, {"server_args": {"dtype": "bfloat16"}})
    assert found == MediaCard(ways=frozenset({"tensors"}), dtype="bfloat16", items_max={"video": 0})


def test_an_sglang_that_others_encode_for_takes_no_pictures_from_here() -> None:
    server = {"server_args": {"dtype": "bfloat16", "language_only": True}}
    assert card(Contract.SGLANG, {"supports_vision": True}, dict(server)) is None
    server["server_args"]["language_only"] = False
    assert card(Contract.SGLANG, {"supports_vision": True}, dict(server)) is not None


def test_tokenspeed_says_its_modalities() -> None:
    model = {
        "supports_multimodal": True,
        "supported_modalities": [common_pb2.IMAGE],
        "multimodal_encoder_dtype": "float16",
    }
    server = {"scheduler_info": {"shm_namespace_id": "boot:22"}}
    found = card(Contract.TOKENSPEED, model, dict(server))
    assert found == MediaCard(
        ways=frozenset({"tensors"}),
        dtype="float16",
        items_max={"video": 0},
        shared_memory="boot:22",
    )
    both = {**model, "supported_modalities": [common_pb2.IMAGE, common_pb2.VIDEO]}
    seen = card(Contract.TOKENSPEED, both, dict(server))
    assert seen is not None
    assert not seen.items_max
    hears = {**model, "supported_modalities": [common_pb2.AUDIO]}
    assert card(Contract.TOKENSPEED, hears, dict(server)) is None


def test_trtllm_takes_files_and_mlx_nothing() -> None:
    assert card(Contract.TRTLLM, {}, {}) == MediaCard(ways=frozenset({"encoded"}))
    assert card(Contract.MLX, {}, {}) is None


@given(text=st.text(max_size=300))
def test_any_words_give_limits_that_are_numbers(text: str) -> None:
    assert all(0 <= most <= 1 << 31 for most in item_limits(text).values())
    assert float_dtype(text) in ("float32", "float16", "bfloat16")


def test_the_first_limit_that_is_none_is_left_out() -> None:
    assert item_limits("image=8,video=1") == {"image": 8, "video": 1}
    assert item_limits("image=-1, video=") == {}
