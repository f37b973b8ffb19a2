"""Rules of vendors' caches: by marks or by themselves, from which length on, and whose they are."""

from typing import Any

import pytest

from smg_node.providers.affinity.cache_rules import (
    cache_rules,
    keyed_scope,
    least_tokens,
    scope_of,
)
from smg_node.providers.hosting import HOSTINGS
from smg_node.providers.provider_spec import ModelSpec, ProviderSpec


def spec(kind: str, **more: Any) -> ProviderSpec:
    return ProviderSpec("p", kind, **more)


@pytest.mark.parametrize(
    ("kind", "model", "api", "marked", "mark", "takes_key"),
    [
        ("anthropic", "claude-sonnet-5", "messages", True, "top", False),
        ("foundry", "claude-sonnet-5", "messages", True, "top", False),
        ("vertex_anthropic", "claude-sonnet-5", "messages", True, "last", False),
        ("bedrock_invoke", "eu.anthropic.claude-sonnet-5", "messages", True, "last", False),
        ("bedrock", "eu.anthropic.claude-sonnet-5", "converse", True, "point", False),
        ("bedrock", "amazon.nova-pro-v1:0", "converse", True, "", False),
        ("mantle", "anthropic.claude-sonnet-5", "messages", True, "last", False),
        ("openai", "gpt-5.6", "responses", False, "", True),
        ("azure", "my-deployment", "chat", False, "", True),
        ("openai_like", "deepseek-chat", "chat", False, "", False),
        ("gemini", "gemini-3-flash", "generate_content", False, "", False),
    ],
)
def test_a_vendor_caches_what_is_marked_or_all(
    kind: str, model: str, api: str, marked: bool, mark: str, takes_key: bool
) -> None:
    rules = cache_rules(spec(kind), model, api)
    assert (rules.marked, rules.mark, rules.takes_key) == (marked, mark, takes_key)


@pytest.mark.parametrize("kind", HOSTINGS)
def test_every_kind_has_rules_in_each_of_its_apis(kind: str) -> None:
    for api in HOSTINGS[kind].dialects:
        rules = cache_rules(spec(kind), "model", api)
        assert rules.least_tokens >= 512
        assert rules.life_ms == 300_000


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("claude-opus-5", 512),
        ("eu.anthropic.claude-opus-5-20260801-v1:0", 512),
        ("claude-sonnet-5", 1_024),
        ("claude-haiku-4-5", 4_096),
        ("claude-opus-4-6", 4_096),
        ("claude-3-5-haiku-latest", 2_048),
        ("gpt-5.6", 1_024),
        ("gemini-3-flash", 1_024),
        ("gemini-3-pro-preview", 2_048),
    ],
)
def test_the_least_length_is_known_by_the_models_name(model: str, tokens: int) -> None:
    assert least_tokens(model) == tokens


def test_a_definition_says_another_least_length() -> None:
    own = spec("openai", models=(ModelSpec("gpt", cache_min_tokens=64),))
    assert cache_rules(own, "gpt", "chat").least_tokens == 64


def test_geminis_own_cache_counts_half() -> None:
    assert cache_rules(spec("vertex"), "gemini-3-flash", "generate_content").weight == 0.5


def test_a_scope_is_an_accounts_by_region_model_and_key() -> None:
    scopes = {
        scope_of(spec("bedrock", region="eu"), "m"),
        scope_of(spec("bedrock", region="us"), "m"),
        scope_of(spec("bedrock", region="eu"), "n"),
        scope_of(spec("bedrock", region="eu"), "m", "0011"),
        scope_of(ProviderSpec("q", "bedrock", region="eu"), "m"),
        keyed_scope(scope_of(spec("bedrock", region="eu"), "m"), "key"),
    }
    assert len(scopes) == 6
    assert all(0 <= one < 2**32 for one in scopes)
    assert keyed_scope(7, "") == 7
