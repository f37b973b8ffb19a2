"""Models of vendors: which are served where, and the traits that decide what they refuse and give back."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, Literal, NamedTuple

Issuer = Literal["openai", "anthropic", "google", "xai", "open"]

MODELS: Final[Mapping[str, tuple[str, ...]]] = {
    "openai": ("gpt-5.6", "gpt-4.1-mini", "o4-mini", "text-embedding-3-small"),
    "anthropic": ("claude-sonnet-5", "claude-opus-4-6", "claude-haiku-4-5"),
    "google": ("gemini-3-pro-preview", "gemini-3-flash", "gemini-2.5-flash"),
    "bedrock": (
        "eu.anthropic.claude-sonnet-5",
        "us.anthropic.claude-haiku-4-5-20251001-v1:0",
        "amazon.nova-pro-v1:0",
        "openai.gpt-oss-120b-1:0",
    ),
    "mantle": ("openai.gpt-oss-120b", "anthropic.claude-sonnet-5"),
    "xai": ("grok-4.5", "grok-4.5-fast"),
    "open": ("model-large", "model-thinking"),
}
"""Table of a hosting to the names of its models, unless others are asked for."""


class Traits(NamedTuple):
    """What is particular to a model.

    `fixed_sampling`: temperature and its kind are refused. `signs_calls`: a first call without its signature is
    refused. `hides_thoughts`: a thought has no text unless asked for. `thinks`: it can think. `thinks_always`: it does.
    """

    issuer: Issuer
    context: int = 200_000
    output_max: int = 64_000
    cache_min_tokens: int = 1_024
    thinks: bool = False
    thinks_always: bool = False
    fixed_sampling: bool = False
    signs_calls: bool = False
    hides_thoughts: bool = False


_ROWS: Final = (
    (
        r"claude-\w+-5\b",
        Traits(
            "anthropic",
            cache_min_tokens=512,
            thinks=True,
            fixed_sampling=True,
            hides_thoughts=True,
        ),
    ),
    (r"claude-haiku", Traits("anthropic", cache_min_tokens=2_048, thinks=True)),
    (r"claude", Traits("anthropic", thinks=True)),
    (
        r"gemini-3",
        Traits(
            "google",
            context=1_048_576,
            output_max=65_536,
            cache_min_tokens=2_048,
            thinks=True,
            thinks_always=True,
            signs_calls=True,
        ),
    ),
    (r"gemini", Traits("google", context=1_048_576, output_max=65_536, thinks=True)),
    (
        r"^(?:gpt-5|o\d)",
        Traits(
            "openai",
            context=400_000,
            output_max=128_000,
            thinks=True,
            thinks_always=True,
            fixed_sampling=True,
        ),
    ),
    (r"^gpt-", Traits("openai", context=1_047_576, output_max=32_768)),
    (r"gpt-oss", Traits("open", context=131_072, thinks=True, thinks_always=True)),
    (r"grok", Traits("xai", context=256_000, thinks=True, thinks_always=True)),
    (r"think", Traits("open", context=131_072, thinks=True, thinks_always=True)),
)
_PATTERNS: Final = tuple((re.compile(pattern), traits) for pattern, traits in _ROWS)
_PLAIN: Final = Traits("open", context=131_072)


@lru_cache(256)
def traits_of(model: str) -> Traits:
    """Return the traits of a model, by its name."""
    for pattern, traits in _PATTERNS:
        if pattern.search(model):
            return traits
    return _PLAIN
