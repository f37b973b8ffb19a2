"""Whatever a request says of pictures, the simulated engine refuses it, believes it, or sees it: it never breaks."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from smg_grpc_proto.generated import vllm_engine_pb2 as pb

from smg_chaos.engine.media.media_checks import Takes
from smg_chaos.engine.media.media_inputs import WIDTHS, MediaError, read_media
from smg_chaos.engine.media.media_intake import MediaIntake
from smg_chaos.engine.media.vision_models import MODELS
from smg_chaos.engine.protocol.generate_request import Asked
from smg_chaos.engine.protocol.rpc_call import Code

TAKES = Takes(
    model=MODELS["qwen3_vl"],
    placeholder=151,
    normalizes=True,
    items_max={"image": 2},
    tokens_max=100,
    hashes=True,
    schemes=frozenset({"https"}),
)
names = st.sampled_from(["image_grid_thw", "patches_per_image", "pixel_values", "x"])


@st.composite
def tensors(draw: st.DrawFn) -> Any:
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    dtype = draw(st.sampled_from([*WIDTHS, "float64", ""]))
    size = WIDTHS.get(dtype, 1)
    for length in shape:
        size *= length
    if draw(st.booleans()):
        size = draw(st.integers(0, 64))
    return pb.TensorData(
        shape=shape, dtype=dtype, inline=draw(st.binary(min_size=size, max_size=size))
    )


@st.composite
def inputs(draw: st.DrawFn) -> Any:
    message = pb.MultimodalInputs(
        mm_hashes=draw(st.lists(st.text(max_size=3), max_size=3)),
        batched_keys=draw(st.lists(names, max_size=3)),
        flat_keys=draw(st.dictionaries(names, names, max_size=2)),
        im_token_id=draw(st.sampled_from([0, 151])),
    )
    for offset, length in draw(
        st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=3)
    ):
        message.mm_placeholders.add(offset=offset, length=length)
    if draw(st.booleans()):
        message.pixel_values.CopyFrom(draw(tensors()))
    for name in draw(st.lists(names, max_size=3)):
        message.model_specific_tensors[name].CopyFrom(draw(tensors()))
    return message


@given(
    message=inputs(), trusting=st.booleans(), ids=st.lists(st.sampled_from([1, 151]), max_size=12)
)
def test_any_tensors_are_looked_at(message: Any, ids: list[int], *, trusting: bool) -> None:
    intake = MediaIntake(TAKES, trusting=trusting)
    asked = Asked(ids=ids, media={"mm_inputs": message})
    looked = intake.look(asked)
    assert looked.code in (None, Code.INVALID_ARGUMENT, Code.INTERNAL)
    if not trusting and looked.code is None:
        assert not looked.mistakes


def test_a_model_of_text_takes_no_pictures() -> None:
    looked = MediaIntake(None, trusting=True).look(
        Asked(media={"mm_inputs": pb.MultimodalInputs()})
    )
    assert looked.code is Code.INVALID_ARGUMENT


def test_a_file_of_shared_memory_is_read_once_and_must_be_there() -> None:
    tensor = pb.TensorData(shape=[2], dtype="uint8")
    tensor.shm.name, tensor.shm.nbytes = "x", 2
    message = {"mm_inputs": pb.MultimodalInputs(pixel_values=tensor)}
    asked: list[tuple[str, int, int]] = []

    def opened(name: str, offset: int, size: int) -> bytes:
        asked.append((name, offset, size))
        if len(asked) > 1:
            raise FileNotFoundError(2, "No such file")
        return b"ab"

    (found,) = read_media(message, opened)
    assert found.pixels is not None
    assert (found.pixels.data, found.pixels.shared) == (b"ab", True)
    with pytest.raises(MediaError, match="No such file"):
        read_media(message, opened)
    with pytest.raises(MediaError, match="no shared memory"):
        read_media(message, None)
    assert asked == [("x", 0, 2)] * 2


def test_references_beside_tensors_are_refused() -> None:
    both = {"mm_inputs": pb.MultimodalInputs(), "media_refs": pb.MediaRefs()}
    with pytest.raises(MediaError, match="media_refs and"):
        read_media(both, None)
    with pytest.raises(MediaError, match="no items"):
        read_media({"media_refs": pb.MediaRefs()}, None)
