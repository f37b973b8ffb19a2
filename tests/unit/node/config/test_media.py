"""Settings of pictures: what may be named, and what is said of a model's own processor."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from smg_node.config.schema.processor_numbers import NUMBERS
from smg_node.config.sections.mcp import Mcp
from smg_node.config.sections.media import Media, ModelMedia
from smg_node.config.settings import Settings
from smg_node.media.video.video_registry import clip_family_of
from support.media.checkpoints import CHECKPOINTS, Vocabulary, found
from support.media.drawn_clips import PROCESSORS, files

HOSTS = ["pics.example.com", "*.example.com", "cdn:8443", "a_b.c-d.e:1"]
NO_HOSTS = ["", "https://a", "a b", "*", "*.*.com", "a:0", "a:65536", "a:x", "[::1]", "a/b", "a:"]


@pytest.mark.parametrize("host", HOSTS)
def test_hosts_are_names_patterns_and_ports(host: str) -> None:
    assert Media(fetch_hosts=(host,)).fetch_hosts == (host,)
    assert Media(fetch_private_hosts=(host,)).fetch_private_hosts == (host,)
    assert Mcp(dynamic_hosts=(host,)).dynamic_hosts == (host,)


@pytest.mark.parametrize("host", NO_HOSTS)
def test_what_is_no_host_is_refused(host: str) -> None:
    for section in (
        lambda: Media(fetch_hosts=(host,)),
        lambda: Media(fetch_private_hosts=(host,)),
        lambda: Mcp(dynamic_hosts=(host,)),
    ):
        with pytest.raises(ValidationError, match=r"is none of pics\.example\.com"):
            section()


def test_networks_are_for_private_hosts_only() -> None:
    for network in ("10.0.0.0/8", "fd00::/8", "127.0.0.1", "::1"):
        assert Media(fetch_private_hosts=(network,)).fetch_private_hosts == (network,)
    with pytest.raises(ValidationError, match="is none of"):
        Media(fetch_hosts=("10.0.0.0/8",))


def test_a_model_has_numbers_of_its_own() -> None:
    said: Any = {"m": {"media": {"processor": '{"max_pixels": 5}'}}}
    assert Settings(models=said).models["m"].media.processor == '{"max_pixels": 5}'
    assert Settings(models={"m": {}}).models["m"].media.processor is None  # type: ignore[dict-item]  # as files have it


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("", "it must be a JSON object"),
        ("5", "such as"),
        ('[{"max_pixels": 5}]', "such as"),
        ('{"max_pixels": 5', "it must be a JSON object"),
        ('{"a": 1, "a": 2}', "a key stands twice"),
        ('{"a": NaN}', "NaN is no number"),
        ("[" * 2000, "it must be a JSON object"),
        ('{"patch_size": 100000}', "patch_size is 100000, not a whole number from 1 to 128"),
        ('{"patch_size": 0}', "not a whole number from 1"),
        ('{"patch_size": 14.5}', "not a whole number from 1"),
        ('{"patch_size": true}', "not a whole number from 1"),
        ('{"patch_size": "14"}', "not a whole number from 1"),
        ('{"patch_size": null}', "not a whole number from 1"),
        ('{"max_pixels": 1e400}', "not a whole number from 1"),
        ('{"max_pixels": ' + "9" * 400 + "}", "max_pixels is a number of many digits, not a whole"),
        ('{"min_pixels": 4000000000}', "min_pixels is 4000000000"),
        ('{"min_pixels": 200, "max_pixels": 100}', "min_pixels is 200, above max_pixels"),
        ('{"max_pixel": 100}', "did you mean 'max_pixels'"),
        ('{"colour": 100}', "no image processor here reads 'colour'; there are min_pixels"),
        ('{"size": {"longest_edge": 0}}', r"size\.longest_edge is 0"),
        ('{"size": {"edge": 5}}', r"no image processor here reads size\.'edge'"),
        ('{"size": [1]}', "size is"),
        ('{"resample": 0}', "none of 1"),
        ('{"video_processor": 3}', "video_processor is 3, not an object"),
        ('{"video_processor": {"fps": 0}}', r"video_processor\.fps is 0"),
        ('{"video_processor": {"max_frame": 5}}', r"video_processor\.'max_frame'.*max_frames"),
        ('{"rescale_factor": 2}', "rescale_factor is 2"),
        ('{"image_mean": [0.5, 0.5]}', "not three numbers"),
        ('{"image_mean": [0.5, 0.5, ' + "9" * 400 + "]}", "not three numbers"),
        ('{"image_std": [0.5, 0, 0.5]}', "not three numbers above 0"),
        ('{"do_normalize": 1}', "neither true nor false"),
        ('{"image_grid_pinpoints": [[336]]}', r"image_grid_pinpoints\[0\] is"),
        ('{"image_grid_pinpoints": []}', "a list of 1 to 256"),
        ('{"media_proc_cfg": {"patch_size": 1000}}', r"media_proc_cfg\.patch_size"),
    ],
)
def test_numbers_of_a_model_are_one_json_object(said: str, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        ModelMedia(processor=said)


@pytest.mark.parametrize(
    "said",
    [
        "{}",
        '{"min_pixels": 3136, "max_pixels": 12845056, "patch_size": 14.0, "merge_size": 2}',
        '{"size": {"shortest_edge": 65536, "longest_edge": 16777216}, "do_normalize": false}',
        '{"size": 336, "crop_size": {"height": 336, "width": 336}, "resample": 3}',
        '{"image_mean": 0.5, "image_std": [0.5, 0.5, 0.5], "rescale_factor": 0.00392156862745098}',
        '{"image_grid_pinpoints": [[336, 672], [672, 336]]}',
        '{"media_proc_cfg": {"patch_size": 14, "in_patch_limit": 16384}}',
    ],
)
def test_numbers_that_image_processors_have_are_taken(said: str) -> None:
    assert ModelMedia(processor=said).processor == said


class _Asked(dict[str, Any]):
    """Overrides that have nothing, and know what they were asked for."""

    def __init__(self) -> None:
        super().__init__(other=0)
        self.keys_asked: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.keys_asked.add(key)
        return default


@pytest.mark.parametrize("name", sorted(CHECKPOINTS))
def test_every_number_that_a_family_reads_can_be_set(name: str) -> None:
    asked = _Asked()
    found(name, overrides=asked)
    # What stops a family from being known is nothing to set.
    usual = {"patch_size", "resample", "max_dynamic_patch"}
    # All numbers of DeepSeek-VL2 are in its config.json.
    assert usual & asked.keys_asked or name == "deepseek_vl2"
    assert asked.keys_asked - {"fixed_output_tokens", ""} <= set(NUMBERS)


@pytest.mark.parametrize("name", sorted(PROCESSORS))
def test_every_number_that_a_family_of_videos_reads_can_be_set(name: str) -> None:
    asked = _Asked()
    tokens = Vocabulary({"<|video_pad|>": 90, "<|vision_start|>": 91, "<|vision_end|>": 92})
    clip_family_of(files(name), overrides={"video_processor": asked}, tokens=tokens)
    assert {"fps", "max_frames"} <= asked.keys_asked
    for key in asked.keys_asked - {""}:
        why = _refused(json.dumps({"video_processor": {key: None}}))
        assert why is None or "no image processor here reads" not in why, key


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from(sorted(NUMBERS)), inner, max_size=4)
        ),
    )
)
def test_whatever_is_said_is_taken_or_refused_in_words(said: Any) -> None:
    for key in sorted(NUMBERS):
        why = _refused(json.dumps({key: said}))
        assert why is None or key in why


def _refused(said: str) -> str | None:
    """Return why numbers are refused, None where they are not."""
    try:
        ModelMedia(processor=said)
    except ValidationError as error:
        return str(error)
    return None
