import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import pytest

from smg_node.core.errors import SmgError
from smg_node.providers import hosting
from smg_node.providers.parsing.spec_parser import parse_provider
from smg_node.providers.provider_call import ApiKey, BearerToken, ProviderCall, provider_call
from smg_node.providers.provider_spec import ProviderSpec

NOW: Final = 1_700_000_000.0
KEY: Final = ApiKey("k-1")
TOKEN: Final = BearerToken("t-1")
USUAL: Final = {
    "content-type": "application/json",
    "accept": "application/json",
    "user-agent": "smg-node",
}


class FakeSigner:
    """Keeps what it was asked to sign."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def sign(
        self,
        method: str,
        url_path: str,
        query: str,
        headers: Mapping[str, str],
        body: bytes,
        now: float,
    ) -> Mapping[str, str]:
        self.asked.append((method, url_path, query, dict(headers), body, now))
        return {"authorization": "AWS4-HMAC-SHA256 …", "x-amz-date": "20231114T221320Z"}


def spec(kind: str, **said: Any) -> ProviderSpec:
    said.setdefault("credentials", "none")
    return parse_provider("a", {"kind": kind, **said}).spec


def call(
    of: ProviderSpec, operation: str, body: Any = b"{}", *, streamed: bool = False, **more: Any
) -> ProviderCall:
    more.setdefault("credential", KEY)
    return provider_call(of, operation, "m", body, streamed=streamed, now=NOW, **more)


@pytest.mark.parametrize(
    ("of", "operation", "credential", "headers"),
    [
        (
            spec("openai", organization="org-1", project="proj-1"),
            hosting.CHAT,
            KEY,
            {
                "host": "api.openai.com",
                "authorization": "Bearer k-1",
                "openai-organization": "org-1",
                "openai-project": "proj-1",
            },
        ),
        (
            spec("anthropic"),
            hosting.MESSAGES,
            KEY,
            {
                "host": "api.anthropic.com",
                "authorization": "Bearer k-1",
                "anthropic-version": "2026-10-21",
            },
        ),
        (
            spec("anthropic", anthropic_version="2023-06-01"),
            hosting.COUNT_MESSAGES,
            None,
            {"host": "api.anthropic.com", "anthropic-version": "2023-06-01"},
        ),
        (
            spec("gemini"),
            hosting.GENERATE_CONTENT,
            KEY,
            {"host": "generativelanguage.googleapis.com", "x-goog-api-key": "k-1"},
        ),
        (
            spec("vertex", project="p", location="global"),
            hosting.GENERATE_CONTENT,
            TOKEN,
            {"host": "aiplatform.googleapis.com", "authorization": "Bearer t-1"},
        ),
        (
            spec("vertex_anthropic", project="p", location="global"),
            hosting.MESSAGES,
            TOKEN,
            {"host": "aiplatform.googleapis.com", "authorization": "Bearer t-1"},
        ),
        (
            spec("bedrock", region="eu-west-1"),
            hosting.CONVERSE,
            KEY,
            {"host": "bedrock-runtime.eu-west-1.amazonaws.com", "authorization": "Bearer k-1"},
        ),
        (
            spec("azure", resource="acme"),
            hosting.RESPONSES,
            KEY,
            {"host": "acme.openai.azure.com", "api-key": "k-1"},
        ),
        (
            spec("azure", resource="acme"),
            hosting.RESPONSES,
            TOKEN,
            {"host": "acme.openai.azure.com", "authorization": "Bearer t-1"},
        ),
        (
            spec("foundry", resource="acme"),
            hosting.MESSAGES,
            KEY,
            {
                "host": "acme.services.ai.azure.com",
                "x-api-key": "k-1",
                "api-key": "k-1",
                "anthropic-version": "2026-10-21",
            },
        ),
        (
            spec("claude_aws", region="us-east-1", workspace="w-1"),
            hosting.MESSAGES,
            KEY,
            {
                "host": "aws-external-anthropic.us-east-1.api.aws",
                "authorization": "Bearer k-1",
                "anthropic-version": "2026-10-21",
                "anthropic-workspace-id": "w-1",
            },
        ),
        (
            spec("anthropic", base="http://127.0.0.1:9", key_header="x-api-key"),
            hosting.MESSAGES,
            KEY,
            {"host": "127.0.0.1:9", "x-api-key": "k-1", "anthropic-version": "2026-10-21"},
        ),
        (
            spec("openai_like", base="http://127.0.0.1:9/v1", key_header="x-own-key"),
            hosting.CHAT,
            KEY,
            {"host": "127.0.0.1:9", "x-own-key": "k-1"},
        ),
    ],
)
def test_a_call_says_who_it_is_as_the_vendor_wants_it(
    of: ProviderSpec, operation: str, credential: Any, headers: dict[str, str]
) -> None:
    assert call(of, operation, credential=credential).headers == {**USUAL, **headers}


def test_the_signature_covers_what_goes_on_the_wire() -> None:
    signer = FakeSigner()
    of = spec("bedrock_invoke", region="eu-west-1", headers=["x-own"])
    model = "eu.anthropic.claude-sonnet-5-v1:0"
    client = {"anthropic-beta": "b1, b2,b1", "x-own": "y", "x-api-key": "mine"}
    made = provider_call(
        of,
        hosting.MESSAGES,
        model,
        b'{"model":"c","max_tokens":1,"stream":true}',
        streamed=True,
        credential=signer,
        now=NOW,
        headers=client,
    )
    path = "/model/eu.anthropic.claude-sonnet-5-v1%3A0/invoke-with-response-stream"
    body = b'{"anthropic_version":"2026-10-21","anthropic_beta":["b1","b2"],"max_tokens":1}'
    signed = {
        "host": "bedrock-runtime.eu-west-1.amazonaws.com",
        "content-type": "application/json",
        "accept": "application/vnd.amazon.eventstream",
        "user-agent": "smg-node",
        "x-own": "y",
    }
    assert signer.asked == [("POST", path, "", signed, body, NOW)]
    assert made.body == body
    assert made.headers == {
        **signed,
        "authorization": "AWS4-HMAC-SHA256 …",
        "x-amz-date": "20231114T221320Z",
    }
    assert str(made.url) == f"https://bedrock-runtime.eu-west-1.amazonaws.com{path}"


def test_betas_go_in_a_header_where_the_vendor_takes_them_there() -> None:
    client = {"anthropic-beta": "b1", "openai-beta": "no"}
    made = call(
        spec("vertex_anthropic", project="p", location="eu"), hosting.MESSAGES, headers=client
    )
    assert made.headers["anthropic-beta"] == "b1"
    assert "openai-beta" not in made.headers
    assert made.body == b'{"anthropic_version":"2026-10-21"}'


@pytest.mark.parametrize(
    ("quirks", "usage_added", "body"),
    [
        ([], True, b'{"stream_options":{"include_usage":true},"model":"m"}'),
        (["no_stream_options"], False, b'{"model":"m"}'),
    ],
)
def test_a_stream_is_asked_for_its_usage_unless_the_vendor_refuses_that(
    quirks: list[str], usage_added: bool, body: bytes
) -> None:
    made = call(spec("openai", quirks=quirks), hosting.CHAT, b'{"model":"a"}', streamed=True)
    assert (made.usage_added, made.body) == (usage_added, body)
    assert made.headers["accept"] == "text/event-stream"


def test_written_fields_become_the_body() -> None:
    made = call(spec("openai"), hosting.CHAT, {"model": "x", "stream": True}, streamed=True)
    assert json.loads(made.body) == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert made.usage_added is False


@pytest.mark.parametrize(
    ("kind", "operation"), [("anthropic", hosting.CHAT), ("quantum", hosting.CHAT)]
)
def test_what_a_provider_does_not_have_is_said(kind: str, operation: str) -> None:
    of = msgspec.structs.replace(spec("anthropic"), kind=kind)
    with pytest.raises(SmgError) as caught:
        call(of, operation)
    assert (caught.value.status, caught.value.code) == (501, "unsupported_operation")
    assert caught.value.message == f"a provider of kind {kind} has no chat"


@pytest.mark.parametrize("key", ["a\nb", "я", "a b"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(key: str) -> None:
    for credential in (ApiKey(key), BearerToken(key)):
        with pytest.raises(SmgError) as caught:
            call(spec("openai"), hosting.CHAT, credential=credential)
        assert caught.value.code == "provider_secret"
        assert key not in caught.value.message


def test_nothing_secret_is_printed() -> None:
    made = call(spec("openai"), hosting.CHAT, b'{"secret":"words"}')
    shown = f"{made!r} {KEY!r} {TOKEN!r}"
    assert "k-1" not in shown
    assert "t-1" not in shown
    assert "words" not in shown
