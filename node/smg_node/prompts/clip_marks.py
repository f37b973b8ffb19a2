"""Clip marks: what stands for a video or a sound in the prompts of one model, by its config.json. Pure.

A checkpoint that takes such has a token of its own for each kind, which its template writes once for each and its
engine replaces. Where a template only concatenates texts, the tokens around it are written as well, as far as the
vocabulary has them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, Protocol, TypeAlias

import msgspec

ClipKind: TypeAlias = Literal["video", "audio"]

_TOKEN_KEYS: Final[Mapping[ClipKind, tuple[str, ...]]] = {
    "video": ("video_token_id", "video_token_index"),
    "audio": ("audio_token_id", "audio_token_index"),
}
_PLACES: Final = ("text_config", "thinker_config")
"""Parts of a config.json that may name the tokens instead of its root."""
_AROUND: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "<|video_pad|>": (("<|vision_start|>", "<|vision_end|>"),),
    "<|VIDEO|>": (("<|vision_bos|>", "<|vision_eos|>"), ("<|vision_start|>", "<|vision_end|>")),
    "<|video|>": (("<|begin_of_video|>", "<|end_of_video|>"),),
    "<|audio_pad|>": (("<|audio_start|>", "<|audio_end|>"),),
    "<|AUDIO|>": (("<|audio_bos|>", "<|audio_eos|>"),),
}
"""What models were trained with around a mark: the Qwen and GLM families."""


class ClipMark(msgspec.Struct, frozen=True, gc=False):
    """What stands for one kind: `anchor` is the token's text, `literal` what is written among strings."""

    kind: ClipKind
    anchor: str
    literal: str


class Vocabulary(Protocol):
    """The tokenizer, as far as marks need it."""

    def token_id(self, text: str) -> int | None:
        """Return the id of a token that the vocabulary has under exactly this text."""
        ...

    def text(self, token_id: int | None) -> str | None:
        """Return the text of a token, None for one that the vocabulary has not."""
        ...


def clip_marks(config: Mapping[str, Any], tokens: Vocabulary) -> tuple[ClipMark, ...]:
    """Return the marks of the kinds that a model takes, by its decoded config.json."""
    return tuple(_marks(config, tokens))


def token_named(config: Mapping[str, Any], keys: tuple[str, ...]) -> int | None:
    """Return the token id that a config.json has under one of these keys, in its root first."""
    for place in (config, *[config.get(name) for name in _PLACES]):
        if isinstance(place, dict):
            for key in keys:
                value = place.get(key)
                if isinstance(value, int) and not isinstance(value, bool):
                    return value
    return None


def _marks(config: Mapping[str, Any], tokens: Vocabulary) -> Iterator[ClipMark]:
    for kind, keys in _TOKEN_KEYS.items():
        anchor = tokens.text(token_named(config, keys))
        if anchor:
            yield ClipMark(kind, anchor, _literal(anchor, tokens))


def _literal(anchor: str, tokens: Vocabulary) -> str:
    for opens, closes in _AROUND.get(anchor, ()):
        if tokens.token_id(opens) is not None and tokens.token_id(closes) is not None:
            return f"{opens}{anchor}{closes}"
    return anchor
