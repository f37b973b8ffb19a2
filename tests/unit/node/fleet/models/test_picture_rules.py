"""How a model's pictures are made, by its files: nothing kept for models that see nothing, and worked out once."""

import json
from typing import Any

import pytest

from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.fleet.models.picture_rules import TokenTexts, picture_rules
from smg_node.media.video.clip import ClipHeader
from smg_node.tokens.tokenizer import Tokenizer
from support.media.checkpoints import CHECKPOINTS, TOKENS, encoded
from support.models.bytewise_tokenizer import BytewiseTokenizer


class Named(BytewiseTokenizer):
    """A vocabulary with some tokens that have a text of their own."""

    vocabulary = 200_000

    def __init__(self, tokens: dict[str, int]) -> None:
        self._tokens = tokens

    def encode(self, text: str, *, add_special_tokens: bool) -> Any:
        if text in self._tokens:
            return [self._tokens[text]]
        return super().encode(text, add_special_tokens=add_special_tokens)

    def token_text(self, token_id: int) -> str:
        named = {number: text for text, number in self._tokens.items()}
        return named.get(token_id) or super().token_text(token_id)


def bundle(**files: object) -> TokenizerBundle:
    packed = {f"{name}.json": json.dumps(said).encode() for name, said in files.items()}
    return TokenizerBundle(packed, "d", "a test")


@pytest.mark.parametrize("config", [{}, {"model_type": "llama", "hidden_size": 8}, [], 7])
def test_a_model_of_text_keeps_nothing(config: object) -> None:
    assert picture_rules(bundle(config=config, tokenizer={"a": 1})) is None


def test_a_known_family_is_found_once_with_the_operators_numbers_over_those_of_the_files() -> None:
    files = TokenizerBundle(encoded(CHECKPOINTS["qwen3_vl"]), "d", "a test")
    tokenizer: Tokenizer = Named(dict(TOKENS["qwen3_vl"]))
    rules = picture_rules(files)
    capped = picture_rules(files, '{"max_pixels": 1048576}')
    assert rules is not None
    assert capped is not None
    family, other = rules.family(tokenizer), capped.family(tokenizer)
    assert family is not None
    assert other is not None
    assert rules.family(tokenizer) is family
    assert (rules.anchor, rules.why_not) == ("<|image_pad|>", "")
    assert family.plan(1920, 1080).tokens == 2040
    assert other.plan(1920, 1080).tokens < 1024
    assert family.fingerprint != other.fingerprint


def test_an_unknown_family_says_why_and_names_what_config_says_stands_for_a_picture(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = {"model_type": "new_vl", "image_token_id": 9, "vision_config": {"depth": 1}}
    caplog.set_level("INFO", "smg_node.fleet")
    rules = picture_rules(bundle(config=config), None, "eyes")
    assert rules is not None
    assert rules.family(Named({"<img>": 9})) is None
    assert "new_vl" in rules.why_not
    assert rules.anchor == "<img>"
    assert rules.family(Named({"<img>": 9})) is None
    (told,) = caplog.messages
    assert told == f"model eyes: this node makes no tensors of pictures: {rules.why_not}"


def test_only_a_token_of_exactly_that_text_counts() -> None:
    tokens = TokenTexts(Named({"<img>": 300}))
    assert tokens.token_id("<img>") == 300
    assert tokens.token_id("a") == 97
    assert tokens.token_id("ab") is None
    assert tokens.text(300) == "<img>"
    assert tokens.text(None) is None
    assert tokens.text(300_000) is None


VISION: dict[str, int] = {
    "<|image_pad|>": 151655,
    "<|video_pad|>": 151656,
    "<|vision_start|>": 151652,
    "<|vision_end|>": 151653,
}


def test_the_family_of_videos_is_found_when_it_is_asked_for_with_the_operators_numbers() -> None:
    files = TokenizerBundle(encoded(CHECKPOINTS["qwen3_vl"]), "d", "a test")
    tokenizer: Tokenizer = Named(VISION)
    rules = picture_rules(files, '{"video_processor": {"max_frames": 8}}')
    assert rules is not None
    found = rules.clip_family(tokenizer)
    assert found is not None
    assert rules.clip_family(tokenizer) is found
    assert rules.why_no_clips == ""
    long = ClipHeader(320, 240, 6000, 25.0, "mp4", "h264")
    assert len(found.plan(long).frames) == 8


@pytest.mark.parametrize(
    ("checkpoint", "missing", "why"),
    [("internvl", "", "internvl"), ("qwen3_vl", "av", "pip install 'smg-node[media,video]'")],
)
def test_where_videos_are_not_made_it_is_told_why(
    checkpoint: str, missing: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "smg_node.media.video.libraries.find_spec", lambda name: None if name == missing else True
    )
    rules = picture_rules(TokenizerBundle(encoded(CHECKPOINTS[checkpoint]), "d", "a test"))
    assert rules is not None
    assert rules.clip_family(Named(VISION)) is None
    assert why in rules.why_no_clips
