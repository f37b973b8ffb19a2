"""Hostings: the paths of each, and what lies beside them."""

import pytest

from smg_chaos.vendor.hostings.hosting import HOSTINGS
from smg_chaos.vendor.hostings.models import MODELS, traits_of
from smg_chaos.vendor.hostings.operations import Operation
from smg_chaos.vendor.hostings.quirks import QUIRKS, VENDORS

PUBLISHERS = "/v1/projects/p/locations/global/publishers"
PATHS: list[tuple[str, str, Operation, dict[str, str]]] = [
    ("openai", "/v1/responses", Operation.RESPONSES, {}),
    ("gemini", "/v1beta/models/g-3:countTokens", Operation.COUNT_CONTENTS, {"model": "g-3", "version": "v1beta"}),
    ("gemini", "/v1/openai/chat/completions", Operation.CHAT, {"version": "v1"}),
    ("vertex", f"{PUBLISHERS}/google/models/g:streamGenerateContent", Operation.STREAM_GENERATE, {"model": "g"}),
    ("vertex_anthropic", f"{PUBLISHERS}/anthropic/models/c@1:rawPredict", Operation.RAW_PREDICT, {"model": "c@1"}),
    ("vertex_anthropic", f"{PUBLISHERS}/anthropic/models/count-tokens:rawPredict", Operation.COUNT_RAW, {}),
    ("bedrock", "/model/a.b-v1:0/converse", Operation.CONVERSE, {"model": "a.b-v1:0"}),
    ("bedrock", "/model/a.b-v1%3A0/converse-stream", Operation.CONVERSE_STREAM, {"model": "a.b-v1:0"}),
    ("bedrock", "/model/arn%3Aaws%3Ax%2Fy/converse", Operation.CONVERSE, {"model": "arn:aws:x/y"}),
    ("bedrock_invoke", "/model/c/invoke-with-response-stream", Operation.INVOKE_STREAM, {"model": "c"}),
    ("mantle", "/openai/v1/responses", Operation.RESPONSES, {}),
    ("mantle", "/anthropic/v1/messages", Operation.MESSAGES, {}),
    ("azure_dated", "/openai/deployments/d%20e/embeddings", Operation.EMBEDDINGS, {"deployment": "d e"}),
    ("azure_dated", "/openai/responses", Operation.RESPONSES, {}),
    ("foundry", "/anthropic/v1/messages/count_tokens", Operation.COUNT_TOKENS, {}),
    ("openai_like", "/any/base/of/it/chat/completions", Operation.CHAT, {}),
    ("openai_like", "/chat/completions", Operation.CHAT, {}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "path", "operation", "names"), PATHS)
def test_a_path_leads_to_its_operation(
    kind: str, path: str, operation: Operation, names: dict[str, str]
) -> None:
    route = HOSTINGS[kind].route("POST", path)
    assert route is not None
    assert route.operation is operation
    assert route.names | names == route.names


@pytest.mark.parametrize(
    ("kind", "method", "path"),
    [
        ("openai", "POST", "/chat/completions"),
        ("openai", "GET", "/v1/chat/completions"),
        ("openai", "POST", "/v1/chat/completions/"),
        ("anthropic", "POST", "/v1/chat/completions"),
        ("gemini", "POST", "/v1beta/models/a/b:generateContent"),
        ("bedrock", "POST", "/model//converse"),
        ("bedrock", "POST", "/model/a/b/converse"),
        ("azure_dated", "POST", "/openai/deployments/d/responses"),
    ],
)
def test_another_path_leads_nowhere(kind: str, method: str, path: str) -> None:
    assert HOSTINGS[kind].route(method, path) is None


def test_the_tables_know_each_other() -> None:
    assert {hosting.models for hosting in HOSTINGS.values()} == set(MODELS)
    quirks = {quirk for vendor in VENDORS.values() for quirk in vendor.quirks}
    quirks |= {quirk for hosting in HOSTINGS.values() for quirk in hosting.quirks}
    assert quirks | {"moderation"} == set(QUIRKS)
    assert not QUIRKS.keys() & VENDORS.keys()


@pytest.mark.parametrize(
    ("model", "issuer", "fixed", "signs"),
    [
        ("gpt-5.6", "openai", True, False),
        ("gpt-4.1-mini", "openai", False, False),
        ("openai.gpt-oss-120b-1:0", "open", False, False),
        ("eu.anthropic.claude-sonnet-5", "anthropic", True, False),
        ("claude-opus-4-6", "anthropic", False, False),
        ("gemini-3-flash", "google", False, True),
        ("gemini-2.5-flash", "google", False, False),
        ("grok-4.5", "xai", False, False),
        ("whatever", "open", False, False),
    ],
)
def test_a_model_has_the_traits_of_its_family(
    model: str, issuer: str, *, fixed: bool, signs: bool
) -> None:
    traits = traits_of(model)
    assert (traits.issuer, traits.fixed_sampling, traits.signs_calls) == (issuer, fixed, signs)
