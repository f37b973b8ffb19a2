"""Families of tiles: what a table of published sizes does not show."""

import copy
from array import array
from typing import Any

import pytest

from smg_node.engines.contracts.media.checks import check_media
from smg_node.media.engine_media import MediaRange
from smg_node.media.expand import PlacedPicture, expand
from smg_node.media.families.registry import UnknownFamily
from smg_node.media.family import FinishedFor
from smg_node.media.picture import Picture
from support.engine_media.media_requests import request_of
from support.media.checkpoints import CHECKPOINTS, TOKENS, found, vocabulary
from support.media.checkpoints import family as family_named
from support.media.programs.picture_judge import pattern

FLOATS = FinishedFor(dtype="float32", device_normalizes=False)
TEXT = 5


def changed(name: str, file: str, **values: Any) -> Any:
    files: Any = copy.deepcopy(CHECKPOINTS[name])
    files[file].update(values)
    return files


def reason(name: str, files: Any, **told: Any) -> str:
    unknown = found(name, files, **told)
    assert isinstance(unknown, UnknownFamily)
    return unknown.reason


def placed(name: str, count: int) -> tuple[Any, tuple[MediaRange, ...], Any]:
    """The ids of a prompt with pictures, their ranges, and their tensors."""
    made = family_named(name)
    plan = made.plan(97, 64)
    layout = made.layout(plan, vocabulary(name))
    digests = [f"{at:064x}" for at in range(count)]
    pictures = [PlacedPicture(layout, plan.tokens, each, "messages[0]") for each in digests]
    anchor = vocabulary(name).token_id(made.anchor)
    assert anchor is not None
    ids, ranges = expand(array("I", [TEXT, anchor] * count), anchor, pictures)
    patches = [made.patches(Picture(pattern(97, 64, at)), plan) for at in range(count)]
    return ids, ranges, made.batch([plan] * count, patches, ranges, FLOATS)


@pytest.mark.parametrize("name", CHECKPOINTS)
@pytest.mark.parametrize("count", [1, 2])
def test_what_a_family_makes_may_leave_for_an_engine(name: str, count: int) -> None:
    ids, ranges, batch = placed(name, count)
    assert batch is not None
    assert len(ranges) == count
    check_media(request_of(list(ids), batch), None)


def test_a_blank_line_is_two_tokens_where_the_vocabulary_has_no_other() -> None:
    whole = TOKENS["smolvlm"]
    single = {text: token for text, token in whole.items() if text != "\n\n"}
    made, other = family_named("smolvlm"), found("smolvlm", tokens=single)
    assert other is not None
    assert not isinstance(other, UnknownFamily)
    plan = made.plan(640, 480)
    ids = list(made.layout(plan, vocabulary("smolvlm")).ids)
    at = ids.index(whole["\n\n"])
    wanted = [*ids[:at], whole["\n"], whole["\n"], *ids[at + 1 :]]
    assert list(other.layout(plan, vocabulary("smolvlm")).ids) == wanted
    assert ids.count(whole["\n"]) == plan.grid[0] - 1


def test_idefics_without_splitting_is_one_tile_of_a_picture_that_was_enlarged_first() -> None:
    made = found(
        "idefics3", changed("idefics3", "preprocessor_config.json", do_image_splitting=False)
    )
    assert made is not None
    assert not isinstance(made, UnknownFamily)
    plan = made.plan(640, 480)
    assert plan.shape == (1, 3, 364, 364)
    ids = list(made.layout(plan, vocabulary("idefics3")).ids)
    tokens = TOKENS["idefics3"]
    assert ids[:2] == [tokens["<fake_token_around_image>"], tokens["<global-img>"]]
    assert ids[-1] == tokens["<fake_token_around_image>"]
    assert len(ids) == 169 + 3
    assert made.patches(Picture(pattern(640, 480, 1)), plan).shape == plan.shape


def test_internvls_own_form_goes_by_config_json_and_what_the_operator_says() -> None:
    files = changed("internvl_chat", "preprocessor_config.json", size=224, resample=2)
    made = found("internvl_chat", files)
    assert made is not None
    assert not isinstance(made, UnknownFamily)
    assert made.plan(640, 480) == family_named("internvl_chat").plan(640, 480)
    made = family_named("internvl_chat", overrides={"max_dynamic_patch": 2})
    assert made.plan(1000, 500).shape[0] == 3
    made = family_named("internvl_chat", overrides={"use_thumbnail": False})
    assert made.plan(1000, 500).shape[0] == 2
    made = family_named("internvl_chat", overrides={"dynamic_image_size": False})
    assert made.plan(1000, 500).shape[0] == 1


@pytest.mark.parametrize(
    ("name", "file", "values", "told"),
    [
        ("idefics3", "preprocessor_config.json", {"size": {"longest_edge": 1500}}, "no multiple"),
        ("idefics3", "preprocessor_config.json", {"resample": 4}, "resample"),
        ("idefics3", "preprocessor_config.json", {"do_pad": False}, "do_pad is false"),
        ("idefics3", "processor_config.json", {"image_seq_len": 64}, "image_seq_len"),
        (
            "smolvlm",
            "preprocessor_config.json",
            {"max_image_size": {"longest_edge": 128}},
            "is not the image_size",
        ),
        ("llava_onevision", "config.json", {"vision_aspect_ratio": "anyres_max_4"}, "anyres_max_9"),
        ("llava_onevision", "preprocessor_config.json", {"do_pad": False}, "do_pad is false"),
        ("llava_siglip", "preprocessor_config.json", {"size": 224}, "size is not the image_size"),
        ("internvl_chat", "config.json", {"min_dynamic_patch": 13}, "above max_dynamic_patch"),
        ("internvl_chat", "config.json", {"downsample_ratio": "half"}, "downsample_ratio"),
        ("internvl_chat", "config.json", {"dynamic_image_size": "yes"}, "neither true nor false"),
        ("gemma3n", "processor_config.json", {"image_seq_length": 64}, "image_seq_length"),
    ],
)
def test_a_processor_that_does_otherwise_is_not_known(
    name: str, file: str, values: dict[str, Any], told: str
) -> None:
    assert told in reason(name, changed(name, file, **values))


def test_a_vocabulary_without_marks_of_all_tiles_is_not_known() -> None:
    tokens = {text: token for text, token in TOKENS["idefics3"].items() if "row_3" not in text}
    assert reason("idefics3", None, tokens=tokens) == "the tokenizer has no token '<row_3_col_1>'"


def test_siglip_without_its_first_feature_has_one_patch_less() -> None:
    files = changed("llava_siglip", "config.json", vision_feature_select_strategy="default")
    made = found("llava_siglip", files)
    assert made is not None
    assert not isinstance(made, UnknownFamily)
    assert made.plan(640, 480).tokens == 728
