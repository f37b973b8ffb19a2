"""Cache rules: how each vendor caches prompts: by marks or by itself, for how long, from which length on, where. Pure.

Sources are the vendors' documents of autumn 2026. Least lengths are not told by any API, and what is shorter is not
cached without a word, so a table by names of models stands here; a definition's `cache_min_tokens` goes before it.
"""

import re
from hashlib import blake2b
from typing import Final

from smg_node.engines.http.vendor_cache import LIFE_MS, CacheRules, MarkForm
from smg_node.providers.issuers import issuer_of
from smg_node.providers.provider_spec import ProviderSpec

IMPLICIT_WEIGHT: Final = 0.5
"""Gemini's own cache gives no promise."""
LEAST_TOKENS: Final = 1_024
_LEAST: Final = tuple(
    (re.compile(pattern), tokens)
    for pattern, tokens in (
        (r"claude-(opus|fable|mythos)-5\b", 512),
        (r"claude-(haiku-4-5|opus-4-[567])\b", 4_096),
        (r"claude-3(-5)?-haiku|claude-haiku-3", 2_048),
        (r"gemini-.*flash", 1_024),
        (r"gemini", 2_048),
    )
)
_TOP: Final = frozenset({"anthropic", "claude_aws", "claude_gcp", "foundry"})
"""Kinds where one mark at the top of a body stands for the end of the prompt. Elsewhere it is put on the last block."""
_KEYED: Final = frozenset({"openai", "azure", "azure_dated", "xai"})
_SCOPE_BYTES: Final = 4


def cache_rules(spec: ProviderSpec, model: str, api: str) -> CacheRules:
    """Return how a model of a provider caches what it is asked in that API."""
    issuer = issuer_of(spec.kind, model, spec.name)
    least = spec.model(model).cache_min_tokens or least_tokens(model)
    if api == "converse" or issuer == "anthropic":
        claude = issuer == "anthropic"
        form: MarkForm = "point" if api == "converse" else "top" if spec.kind in _TOP else "last"
        return CacheRules(True, least, LIFE_MS, mark=form if claude and api != "chat" else "")
    return CacheRules(
        False,
        least,
        LIFE_MS,
        weight=IMPLICIT_WEIGHT if issuer == "google" else 1.0,
        takes_key=spec.kind in _KEYED and api in ("chat", "responses"),
    )


def least_tokens(model: str) -> int:
    """Return the shortest beginning that a model's vendor caches, in tokens, by the vendor's name of the model."""
    for pattern, tokens in _LEAST:
        if pattern.search(model):
            return tokens
    return LEAST_TOKENS


def scope_of(spec: ProviderSpec, model: str, key: str = "") -> int:
    """Return the number, the same on all nodes, of the cache that a model's prompts share.

    `key` is a digest of the key that has it, "" where the account has.
    """
    place = spec.region or spec.location
    parts = (spec.kind, spec.name, spec.project, spec.organization, place, model, key)
    said = "\0".join(parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(said, digest_size=_SCOPE_BYTES).digest(), "big")


def keyed_scope(scope: int, cache_key: str) -> int:
    """Return the number of the part of a cache that requests with that `prompt_cache_key` share."""
    if not cache_key:
        return scope
    said = scope.to_bytes(_SCOPE_BYTES, "big") + cache_key.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(said, digest_size=_SCOPE_BYTES).digest(), "big")
