from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.providers.hosting import HOSTINGS
from smg_node.providers.parsing.spec_parser import ParsedProvider, parse_provider, parse_providers
from smg_node.providers.provider_spec import (
    Credentials,
    ModelSpec,
    ProviderSecrets,
    ProviderSpec,
    Timeouts,
)
from smg_node.providers.secret import Secret

KEYS = {"keys": ["env:KEY"]}


def test_providers_are_read_with_their_secrets_apart() -> None:
    found = parse_providers(
        {
            "anthropic-a": {
                "kind": "anthropic",
                "keys": ["file:/run/secrets/a1", "sk-ant-literal"],
                "labels": {"zone": "us"},
                "timeouts": {"first_event_s": 900},
                "models": ["claude-a", {"model": "claude-b", "output_max": 9, "quirks": ["q"]}],
                "headers": ["x-custom"],
            },
            "bedrock-eu": {
                "kind": "bedrock",
                "region": "eu-central-1",
                "credentials": {
                    "kind": "aws",
                    "access_key_id": "env:ID",
                    "secret_access_key": "env:SECRET",
                },
                "state": "ours",
            },
        }
    )
    assert [one.spec for one in found] == [
        ProviderSpec(
            "anthropic-a",
            "anthropic",
            labels={"zone": "us"},
            timeouts=Timeouts(first_event_s=900.0),
            models=(ModelSpec("claude-a"), ModelSpec("claude-b", (), 9, ("q",))),
            headers=("x-custom",),
        ),
        ProviderSpec(
            "bedrock-eu", "bedrock", region="eu-central-1", credentials=Credentials("aws")
        ),
    ]
    assert [one.secrets for one in found] == [
        ProviderSecrets((Secret("file:/run/secrets/a1"), Secret("sk-ant-literal"))),
        ProviderSecrets(
            (), {"access_key_id": Secret("env:ID"), "secret_access_key": Secret("env:SECRET")}
        ),
    ]
    assert "sk-ant-literal" not in repr(found)


SMALLEST: dict[str, dict[str, Any]] = {
    "openai": KEYS,
    "anthropic": KEYS,
    "gemini": KEYS,
    "vertex": {"project": "p", "location": "global"},
    "vertex_anthropic": {"project": "p", "location": "eu"},
    "bedrock": {"region": "us-east-1"},
    "bedrock_invoke": {"region": "us-east-1", **KEYS},
    "mantle": {"region": "us-east-1", "credentials": "aws"},
    "azure": {"resource": "acme", **KEYS},
    "azure_dated": {"resource": "acme", "api_version": "2025-03-01-preview", **KEYS},
    "foundry": {"base": "https://x.example/anthropic", **KEYS},
    "claude_aws": {"region": "us-east-1", "workspace": "wrkspc_1", **KEYS},
    "claude_gcp": {"project": "p", "workspace": "w"},
    "xai": KEYS,
    "openai_like": {"base": "https://api.z.ai/api/paas/v4/", **KEYS},
}


@pytest.mark.parametrize("kind", HOSTINGS)
def test_every_kind_can_be_said_in_few_words(kind: str) -> None:
    said = SMALLEST[kind]
    if kind == "bedrock":
        said = {**said, "credentials": {"kind": "aws", "source": "instance"}}
    spec = parse_provider("a", {"kind": kind, **said}).spec
    usual = {"vertex": "gcp", "vertex_anthropic": "gcp", "claude_gcp": "gcp", "mantle": "aws"}
    usual["bedrock"] = "aws"
    assert (spec.kind, spec.credentials.kind) == (kind, usual.get(kind, "keys"))
    assert not spec.base.endswith("/")


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({}, "kind", "is missing; kinds: openai, anthropic, gemini"),
    ({"kind": "antropic"}, "kind", "'antropic' is unknown; did you mean 'anthropic'?; kinds: "),
    ({"kind": 3}, "kind", "'3' is unknown; kinds: "),
    ({"kind": "openai", **KEYS, "lables": {}}, "lables", "is unknown; did you mean 'labels'?"),
    ({"kind": "openai"}, "keys", "is missing: give a key"),
    ({"kind": "openai", "keys": [7]}, "keys[0]", "must be a text: file:/path"),
    ({"kind": "openai", "keys": ["file:rel"]}, "keys[0]", "by a whole path"),
    ({"kind": "openai", "keys": ["env:"]}, "keys[0]", "names nothing"),
    ({"kind": "openai", "keys": ["a", "a"]}, "keys", "the same key twice"),
    ({"kind": "openai", "keys": ["a"] * 65}, "keys", "more than 64 keys"),
    ({"kind": "openai", **KEYS, "region": "EU"}, "region", "'EU' is not small letters"),
    ({"kind": "openai", **KEYS, "base": "api.example"}, "base", "is no URL of a vendor"),
    ({"kind": "openai", **KEYS, "base": "https://u:p@x"}, "base", "is no URL of a vendor"),
    ({"kind": "openai", **KEYS, "base": "https://x/v1?a=1"}, "base", "is no URL of a vendor"),
    ({"kind": "anthropic", **KEYS, "base": "https://x/v1"}, "base", "ends in /v1, which anthropic"),
    ({"kind": "gemini", **KEYS, "base": "https://x/v1beta"}, "base", "ends in /v1beta, which"),
    ({"kind": "openai_like", **KEYS}, "base", "is missing: openai_like needs it"),
    ({"kind": "bedrock"}, "region", "is missing: bedrock needs it"),
    (
        {"kind": "vertex", "project": "p", "region": "eu"},
        "location",
        "is missing: vertex needs it; region is not it",
    ),
    ({"kind": "azure", **KEYS}, "resource", "is missing: azure needs it"),
    ({"kind": "azure_dated", "resource": "a", **KEYS}, "api_version", "is missing"),
    (
        {"kind": "openai", "credentials": "aws"},
        "credentials.kind",
        "'aws' is unknown; openai takes: keys, none",
    ),
    (
        {"kind": "vertex", "project": "p", "location": "eu", **KEYS},
        "credentials.kind",
        "'keys' is unknown; vertex takes: gcp, none",
    ),
    (
        {"kind": "bedrock", "region": "r", "credentials": {"kind": "aws", "access_key_id": "x"}},
        "credentials",
        "needs access_key_id and secret_access_key together",
    ),
    (
        {"kind": "bedrock", "region": "r", "credentials": {"kind": "aws", "session_token": "x"}},
        "credentials.session_token",
        "beside it",
    ),
    (
        {"kind": "bedrock", "region": "r", "credentials": {"kind": "aws", "source": "instanz"}},
        "credentials.source",
        "'instanz' is unknown; did you mean 'instance'?; known: keys, environment",
    ),
    (
        {"kind": "bedrock", "region": "r", "credentials": {"kind": "aws", "source": "keys"}},
        "credentials.access_key_id",
        "is missing",
    ),
    (
        {"kind": "bedrock", "region": "r", "credentials": {"kind": "aws"}, **KEYS},
        "keys",
        "cannot stand beside credentials of kind aws",
    ),
    (
        {"kind": "azure", "resource": "a", "credentials": {"kind": "entra", "client_id": "c"}},
        "credentials.tenant",
        "is missing",
    ),
    (
        {
            "kind": "azure",
            "resource": "a",
            "credentials": {"kind": "entra", "client_id": "c", "tenant": "t"},
        },
        "credentials",
        "needs either client_secret or token_file",
    ),
    (
        {
            "kind": "vertex",
            "project": "p",
            "location": "l",
            "credentials": {"kind": "gcp", "refresh_token": "r"},
        },
        "credentials",
        "needs client_id and client_secret",
    ),
    (
        {
            "kind": "vertex",
            "project": "p",
            "location": "l",
            "credentials": {"kind": "gcp", "source": "service_account"},
        },
        "credentials.service_account",
        "is missing",
    ),
    (
        {"kind": "vertex", "project": "p", "location": "l", "client_keys": True},
        "client_keys",
        "needs credentials of kind keys, not gcp",
    ),
    ({"kind": "openai", **KEYS, "client_keys": "yes"}, "client_keys", "must be true or false"),
    ({"kind": "openai", **KEYS, "state": "their"}, "state", "'their' is unknown; known: ours, "),
    (
        {"kind": "openai", **KEYS, "cache_scope": "keys"},
        "cache_scope",
        "'keys' is unknown; did you mean 'key'?",
    ),
    (
        {"kind": "openai", **KEYS, "cache_key_added": 1},
        "cache_key_added",
        "must be true or false",
    ),
    (
        {"kind": "openai", **KEYS, "models": [{"model": "m", "cache_min_tokens": True}]},
        "models[0].cache_min_tokens",
        "must be a number of tokens",
    ),
    ({"kind": "openai", **KEYS, "timeouts": {"stall": 3}}, "timeouts.stall", "mean 'stall_s'?"),
    ({"kind": "openai", **KEYS, "timeouts": {"stall_s": 0}}, "timeouts.stall_s", "above 0"),
    ({"kind": "openai", **KEYS, "timeouts": 3}, "timeouts", "must be an object"),
    ({"kind": "openai", **KEYS, "headers": ["cookie"]}, "headers[0]", "is no header that may pass"),
    ({"kind": "openai", **KEYS, "headers": ["x y"]}, "headers[0]", "is no header that may pass"),
    ({"kind": "openai", **KEYS, "key_header": "host"}, "key_header", "cannot hold a key"),
    ({"kind": "openai", **KEYS, "labels": {"zone": 3}}, "labels.zone", "must be a text"),
    ({"kind": "openai", **KEYS, "labels": {"a b": "c"}}, "labels.a b", "must be a short word"),
    ({"kind": "openai", **KEYS, "proxy": "socks5://x"}, "proxy", "is not a URL without a path"),
    ({"kind": "openai", **KEYS, "quirks": ["A-b"]}, "quirks[0]", "is no name of a quirk"),
    ({"kind": "openai", **KEYS, "quirks": "a"}, "quirks", "must be a list"),
    ({"kind": "openai", **KEYS, "project": "a/b"}, "project", "is not the id of a project"),
    ({"kind": "openai", **KEYS, "models": ["a", "a"]}, "models[1]", "names 'a' again"),
    ({"kind": "openai", **KEYS, "models": [{}]}, "models[0].model", "must be a text"),
    (
        {"kind": "openai", **KEYS, "models": [{"model": "m", "dialects": ["chats"]}]},
        "models[0].dialects[0]",
        "'chats' is unknown; did you mean 'chat'?; openai speaks: responses, chat",
    ),
    (
        {"kind": "openai", **KEYS, "models": [{"model": "m", "output_max": -1}]},
        "models[0].output_max",
        "must be a number of tokens",
    ),
]


@pytest.mark.parametrize(("said", "where", "why"), WRONG)
def test_a_mistake_is_told_with_its_path(said: dict[str, Any], where: str, why: str) -> None:
    with pytest.raises(SmgError) as caught:
        parse_provider("a", said)
    error = caught.value
    assert (error.where, error.code, error.status) == (
        f"providers.a.{where}",
        "invalid_provider",
        400,
    )
    assert why in error.message


@pytest.mark.parametrize("name", ["", "A", "a b", "-a", 7, "a" * 64])
def test_a_name_that_is_none_is_refused(name: object) -> None:
    with pytest.raises(SmgError) as caught:
        parse_provider(name, {"kind": "openai", **KEYS})
    assert caught.value.where == "providers"


@pytest.mark.parametrize("secret", ["sk-very-secret " * 9_000, "  "])
def test_no_error_repeats_a_secret(secret: str) -> None:
    with pytest.raises(SmgError) as caught:
        parse_provider("a", {"kind": "openai", "keys": [secret]})
    assert "very-secret" not in caught.value.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    ["kind", "base", "keys", "credentials", "labels", "headers", "models", "timeouts", "state"]
)


@given(st.dictionaries(FIELDS, JSON), st.sampled_from([None, *HOSTINGS]))
def test_any_value_gives_a_provider_or_an_error_of_ours(said: Any, kind: str | None) -> None:
    if kind is not None:
        said["kind"] = kind
    found: ParsedProvider | SmgError
    try:
        found = parse_provider("a", said)
    except SmgError as error:
        found = error
    if isinstance(found, SmgError):
        assert found.code == "invalid_provider"
    else:
        assert found.spec.kind == said["kind"]


def test_no_provider_is_called_as_routes_call_own_engines() -> None:
    with pytest.raises(SmgError, match="engines is no name: targets of routes call own engines so"):
        parse_provider("engines", {"kind": "openai", "keys": ["k"]})
