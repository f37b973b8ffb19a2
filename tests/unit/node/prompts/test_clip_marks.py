"""What stands for videos and sound in prompts, by the config.json of models as they are published."""

from collections.abc import Mapping
from typing import Any

import pytest

from smg_node.prompts.clip_marks import ClipMark, clip_marks


class Words:
    """A vocabulary whose token `n` is the n-th of its texts."""

    def __init__(self, *texts: str) -> None:
        self._texts = texts

    def token_id(self, text: str) -> int | None:
        return self._texts.index(text) if text in self._texts else None

    def text(self, token_id: int | None) -> str | None:
        known = token_id is not None and 0 <= token_id < len(self._texts)
        return self._texts[token_id] if known and token_id is not None else None


QWEN = Words("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
QWEN_AUDIO = Words("<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>")
OMNI = Words("<|VIDEO|>", "<|vision_bos|>", "<|vision_eos|>", "<|AUDIO|>")
QWEN_VIDEO = ClipMark("video", "<|video_pad|>", "<|vision_start|><|video_pad|><|vision_end|>")


@pytest.mark.parametrize(
    ("config", "words", "marks"),
    [
        ({"image_token_id": 2, "video_token_id": 3}, QWEN, (QWEN_VIDEO,)),
        ({"text_config": {"video_token_id": 3}}, QWEN, (QWEN_VIDEO,)),
        (
            {"audio_token_index": 0},
            QWEN_AUDIO,
            (ClipMark("audio", "<|AUDIO|>", "<|audio_bos|><|AUDIO|><|audio_eos|>"),),
        ),
        (
            {"thinker_config": {"video_token_index": 0, "audio_token_index": 3}},
            OMNI,
            (
                ClipMark("video", "<|VIDEO|>", "<|vision_bos|><|VIDEO|><|vision_eos|>"),
                ClipMark("audio", "<|AUDIO|>", "<|AUDIO|>"),
            ),
        ),
        ({"video_token_index": 0}, Words("<video>"), (ClipMark("video", "<video>", "<video>"),)),
        ({"image_token_id": 2}, QWEN, ()),
        ({"video_token_id": True}, QWEN, ()),
        ({"video_token_id": "3"}, QWEN, ()),
        ({"video_token_id": 99}, QWEN, ()),
        ({"video_token_id": -1}, QWEN, ()),
        ({"text_config": [1], "thinker_config": None}, QWEN, ()),
        ({}, QWEN, ()),
    ],
)
def test_marks_are_the_tokens_that_a_config_names_with_what_stands_around_them(
    config: Mapping[str, Any], words: Words, marks: tuple[ClipMark, ...]
) -> None:
    assert clip_marks(config, words) == marks
