import contextlib
import copy
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.media.families.registry import (
    FAMILIES,
    UnknownFamily,
    family_of,
    values_in_force,
)
from smg_node.media.seeing import sees
from support.media.checkpoints import CHECKPOINTS, Vocabulary, encoded, family, found, vocabulary

TEXT_ONLY = {"model_type": "qwen3", "vocab_size": 151936}


def changed(name: str, file: str, **values: Any) -> Any:
    files: Any = copy.deepcopy(CHECKPOINTS[name])
    files.setdefault(file, {}).update(values)
    return files


def reason(name: str, files: Any, **told: Any) -> str:
    unknown = found(name, files, **told)
    assert isinstance(unknown, UnknownFamily)
    return unknown.reason


def origins(name: str, files: Any = None, **told: Any) -> dict[str, tuple[object, str]]:
    made = found(name, files, **told)
    assert made is not None
    assert not isinstance(made, UnknownFamily)
    return {each.name: (each.value, each.origin) for each in values_in_force(made)}


def test_a_model_that_reads_text_only_has_no_family() -> None:
    files = {"config.json": json.dumps(TEXT_ONLY).encode(), "tokenizer.json": b"{}"}
    assert family_of(files, overrides={}, tokens=Vocabulary({})) is None
    assert family_of({}, overrides={}, tokens=Vocabulary({})) is None
    assert not sees(TEXT_ONLY)


@pytest.mark.parametrize("name", [name for name in CHECKPOINTS if name != "kimi_k25"])
def test_configurations_of_models_that_see_are_told_apart(name: str) -> None:
    assert sees(CHECKPOINTS[name]["config.json"])


def test_a_model_that_sees_and_is_not_known_says_so() -> None:
    files = {"config.json": {"model_type": "moondream9", "vision_config": {}}}
    unknown = found("llava", files)
    assert unknown == UnknownFamily(
        "moondream9", "model_type 'moondream9' is not among the known families"
    )


def test_every_known_model_type_has_a_maker() -> None:
    for model_type, name in FAMILIES.items():
        unknown = found("llava", {"config.json": {"model_type": model_type}}, tokens={})
        assert isinstance(unknown, UnknownFamily), name
        assert "not among the known" not in unknown.reason


def test_pixtral_is_told_from_llava_by_its_encoder() -> None:
    assert family("llava").name == "llava"
    assert family("pixtral").name == "pixtral"
    assert family("mistral3").name == "mistral3"


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_anchors_are_the_tokenizers_and_placeholders_the_configurations(name: str) -> None:
    made = family(name)
    config = CHECKPOINTS[name]["config.json"]
    told = config.get("image_token_id", config.get("image_token_index"))
    assert made.placeholder == (told or vocabulary(name).token_id(made.anchor))
    assert vocabulary(name).token_id(made.anchor) is not None
    assert made.order == ("as_sent" if name == "kimi_k25" else "media_first")


def test_an_image_token_of_the_text_part_counts_too() -> None:
    files = changed(
        "qwen3_vl", "config.json", image_token_id=None, text_config={"image_token_id": 7}
    )
    made = found("qwen3_vl", files)
    assert made is not None
    assert not isinstance(made, UnknownFamily)
    assert made.placeholder == 7


# ── Order of evidence ────────────────────────────────────────────────────────


def test_an_override_wins_over_every_file_whatever_it_is_called_there() -> None:
    told = origins("qwen3_vl", overrides={"max_pixels": 1000000})
    assert told["max_pixels"] == (1000000, "models.media.processor")
    assert told["min_pixels"] == (65536, "preprocessor_config.json")
    told = origins("qwen2_5_vl", overrides={"size": {"longest_edge": 1000000}})
    assert told["max_pixels"] == (1000000, "models.media.processor")
    assert told["min_pixels"] == (3136, "preprocessor_config.json")


def test_the_preprocessor_wins_over_the_processor_and_that_over_the_family() -> None:
    files = changed(
        "qwen3_vl", "processor_config.json", image_processor={"patch_size": 8, "resample": 2}
    )
    told = origins("qwen3_vl", files)
    assert told["patch_size"] == (16, "preprocessor_config.json")
    assert told["resample"] == (2, "processor_config.json")
    assert told["rescale_factor"] == (1 / 255, "family default")


def test_a_null_is_as_good_as_nothing() -> None:
    files = changed("qwen3_vl", "preprocessor_config.json", patch_size=None)
    assert origins("qwen3_vl", files)["patch_size"] == (16, "family default")


def test_the_image_token_comes_from_the_configuration() -> None:
    assert origins("llama4")["image_token_id"] == (200092, "config.json")
    assert origins("phi4mm")["image_token_id"] == (200010, "tokenizer")


# ── Identity ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_fingerprint_is_that_of_the_numbers_and_not_of_their_places(name: str) -> None:
    first = family(name)
    assert first.fingerprint == family(name).fingerprint
    assert len(bytes.fromhex(first.fingerprint)) == 32
    files: Any = copy.deepcopy(CHECKPOINTS[name])
    moved = {**files, "processor_config.json": dict(files.get("processor_config.json", {}))}
    if "preprocessor_config.json" in moved:
        moved["processor_config.json"]["image_processor"] = moved.pop("preprocessor_config.json")
    again = found(name, moved)
    assert again is not None
    assert not isinstance(again, UnknownFamily)
    assert again.fingerprint == first.fingerprint


def test_any_number_changes_the_fingerprint() -> None:
    prints = {family("qwen3_vl").fingerprint, family("qwen2_5_vl").fingerprint}
    for override in ({"max_pixels": 70000}, {"resample": 2}, {"image_mean": [0.5, 0.5, 0.4]}):
        prints.add(family("qwen3_vl", overrides=override).fingerprint)
    assert len(prints) == 5


# ── What is not reproduced goes by reference ─────────────────────────────────


@pytest.mark.parametrize(
    ("name", "values", "told"),
    [
        ("qwen3_vl", {"resample": 1}, "resample of preprocessor_config.json is 1"),
        ("qwen3_vl", {"do_resize": False}, "do_resize is false"),
        ("qwen3_vl", {"do_rescale": False}, "do_rescale is false"),
        ("qwen3_vl", {"do_normalize": "no"}, "neither true nor false"),
        ("qwen3_vl", {"patch_size": 0}, "patch_size of preprocessor_config.json is 0"),
        ("qwen3_vl", {"patch_size": True}, "patch_size"),
        ("qwen3_vl", {"patch_size": "x" * 900}, "'xxx"),
        ("qwen3_vl", {"image_std": [0.5, 0.5, 0]}, "not above zero"),
        ("qwen3_vl", {"image_mean": [0.5]}, "not a list of three numbers"),
        ("qwen3_vl", {"rescale_factor": 2}, "rescale_factor"),
        ("qwen3_vl", {"min_pixels": 99999999}, "above max_pixels"),
        ("llava", {"do_pad": True}, "do_pad is true"),
        ("llava", {"do_center_crop": False}, "do_center_crop is false"),
        ("llava", {"crop_size": {"height": 224, "width": 224}}, "crop_size is not"),
        ("llava", {"crop_size": {"height": 336, "width": 224}}, "crop_size is not square"),
        ("llava_next", {"image_grid_pinpoints": [[336, 672]]}, "differ"),
        ("gemma3", {"do_pan_and_scan": True}, "do_pan_and_scan is true"),
        ("kimi_k25", {"fixed_output_tokens": 5}, "fixed_output_tokens is set"),
        ("internvl", {"min_patches": 13}, "min_patches are above max_patches"),
    ],
)
def test_a_processor_that_does_otherwise_is_not_known(
    name: str, values: dict[str, Any], told: str
) -> None:
    found_reason = reason(name, changed(name, "preprocessor_config.json", **values))
    assert told in found_reason
    assert len(found_reason) < 200


def test_configurations_that_contradict_themselves_are_not_known() -> None:
    siglip = {"vision_config": {"model_type": "siglip_vision_model"}}
    assert "do_center_crop is true" in reason("llava", changed("llava", "config.json", **siglip))
    files = changed("llava", "config.json", vision_config={"model_type": "dinov2"})
    assert "not that of CLIP or SigLIP" in reason("llava", files)
    files = changed("llava_next", "config.json", vision_config={"model_type": "dinov2"})
    assert "not that of CLIP or SigLIP" in reason("llava_next", files)
    files = changed("mistral3", "processor_config.json", patch_size=16)
    assert "patch_size" in reason("mistral3", files)
    pinpoints = [[335, 672]]
    files = changed("llava_next", "config.json", image_grid_pinpoints=pinpoints)
    files["preprocessor_config.json"]["image_grid_pinpoints"] = pinpoints
    assert "not made of tiles" in reason("llava_next", files)
    files = changed("gemma4", "processor_config.json", image_processor={"max_soft_tokens": 281})
    assert "max_soft_tokens is 281" in reason("gemma4", files)


@pytest.mark.parametrize("key", ["boi_token_id", "eoi_token_id", "image_token_id"])
def test_an_id_that_no_prompt_can_hold_is_not_known(key: str) -> None:
    assert key in reason("gemma4", changed("gemma4", "config.json", **{key: 1 << 32}))


@pytest.mark.parametrize("name", ["llava", "llava_next", "llama4"])
def test_a_picture_without_any_feature_is_not_known(name: str) -> None:
    vision = {**CHECKPOINTS[name]["config.json"]["vision_config"], "patch_size": 500}
    files = changed(name, "config.json", vision_config=vision)
    assert "patch_size of the vision_config" in reason(name, files)


def test_a_tokenizer_without_the_anchor_is_named() -> None:
    unknown = found("qwen3_vl", tokens={})
    assert isinstance(unknown, UnknownFamily)
    assert unknown.reason == "the tokenizer has no token '<|image_pad|>'"


@pytest.mark.parametrize("content", [b"", b"[]", b"nonsense", b"[" * 5000, b'{"a":'])
@pytest.mark.parametrize("file", ["config.json", "preprocessor_config.json"])
def test_a_file_that_is_no_json_object_is_named(content: bytes, file: str) -> None:
    files = {**encoded(CHECKPOINTS["qwen3_vl"]), file: content}
    unknown = family_of(files, overrides={}, tokens=vocabulary("qwen3_vl"))
    assert isinstance(unknown, UnknownFamily)
    assert file in unknown.reason


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(("height", "width", "shortest_edge", "longest_edge", "x")), inner
        )
    ),
    max_leaves=6,
)
KEYS = (
    "size",
    "crop_size",
    "patch_size",
    "merge_size",
    "max_patches",
    "min_patches",
    "max_pixels",
    "image_mean",
    "image_std",
    "resample",
    "rescale_factor",
    "do_normalize",
    "image_grid_pinpoints",
    "dynamic_hd",
    "media_proc_cfg",
    "max_soft_tokens",
    "pooling_kernel_size",
    "max_image_size",
    "do_image_splitting",
    "min_dynamic_patch",
    "max_dynamic_patch",
    "dynamic_image_size",
    "use_thumbnail",
    "image_size",
    "crop_to_patches",
)
CONFIG_KEYS = (
    "architectures",
    "candidate_resolutions",
    "downsample_ratio",
    "image_grid_pinpoints",
    "image_seq_len",
    "image_seq_length",
    "image_mean",
    "normalize",
    "patch_size",
    "scale_factor",
    "vision_aspect_ratio",
    "vision_feature_select_strategy",
    "vision_soft_tokens_per_image",
)


@pytest.mark.parametrize("name", CHECKPOINTS)
@given(
    values=st.dictionaries(st.sampled_from(KEYS), JSON, max_size=3),
    vision=JSON,
    told=st.dictionaries(st.sampled_from(CONFIG_KEYS), JSON, max_size=2),
    size=st.tuples(st.integers(1, 4000), st.integers(1, 4000)),
)
def test_garbage_is_a_reason_and_never_another_error(
    name: str, values: dict[str, Any], vision: Any, told: dict[str, Any], size: tuple[int, int]
) -> None:
    files = encoded(CHECKPOINTS[name])
    config = dict(CHECKPOINTS[name]["config.json"])
    if vision is not None:
        config["vision_config"] = vision
    files["config.json"] = json.dumps({**config, **told}).encode()
    processor = CHECKPOINTS[name].get("processor_config.json", {})
    files["processor_config.json"] = json.dumps({**processor, **told}).encode()
    made = family_of(files, overrides=values, tokens=vocabulary(name))
    if isinstance(made, UnknownFamily):
        assert len(made.reason) < 300
        return
    assert made is not None
    with contextlib.suppress(SmgError):
        plan = made.plan(*size)
        assert plan.tokens > 0
        assert min(plan.shape) > 0


# ── What is not used is not loaded ───────────────────────────────────────────


def test_a_family_is_loaded_alone_and_without_numpy() -> None:
    program = (
        "import sys\n"
        "from support.media.checkpoints import family\n"
        "family('qwen3_vl').plan(640, 480)\n"
        "names = [n for n in sys.modules if n.startswith('smg_node.media.families.')]\n"
        "print(sorted(names), 'numpy' in sys.modules, 'PIL' in sys.modules)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": "tests"},
    ).stdout
    room = "smg_node.media.families"
    wanted = sorted(
        [
            f"{room}.checkpoint",
            f"{room}.checkpoint.checkpoint_family",
            f"{room}.checkpoint.processor_files",
            f"{room}.checkpoint.tensors",
            f"{room}.native_size",
            f"{room}.native_size.qwen_vl",
            f"{room}.registry",
        ]
    )
    assert told.strip() == f"{wanted} False False"
