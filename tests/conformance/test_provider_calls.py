"""The vendors' official clients as twins: for the same wish they send what this node sends to each hosting."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import anthropic
import openai
import pytest
from google.auth.credentials import Credentials
from google.genai import Client, errors

from smg_node.providers import hosting
from smg_node.providers.parsing.spec_parser import parse_provider
from smg_node.providers.provider_call import (
    ApiKey,
    BearerToken,
    Credential,
    ProviderCall,
    provider_call,
)
from support.providers.capture_server import Captured, CaptureServer, capture_server

pytestmark: Final = pytest.mark.conformance

KEY: Final = ApiKey("k-1")
TOKEN: Final = BearerToken("t-1")
REFUSED: Final = (openai.APIStatusError, anthropic.APIStatusError, errors.APIError)
AUTH: Final = (
    "authorization",
    "api-key",
    "x-api-key",
    "x-goog-api-key",
    "anthropic-version",
    "anthropic-workspace-id",
    "openai-organization",
    "openai-project",
)
CLAUDE: Final = "claude-sonnet-5@20260101"
BETAS: Final = {"anthropic-beta": "files-api-2025-04-14,interleaved-thinking-2025-05-14"}
WISHES: Final[Mapping[str, Any]] = {
    "plain": {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    "tools": {
        "max_tokens": 9,
        "system": "Be short.",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Grüße\u2028"}]}],
        "tools": [
            {
                "name": "t",
                "input_schema": {"type": "object", "properties": {"model": {"type": "string"}}},
            }
        ],
        "tool_choice": {"type": "any"},
    },
    "thinking": {
        "max_tokens": 9_000,
        "messages": [{"role": "user", "content": "why?"}],
        "thinking": {"type": "enabled", "budget_tokens": 2_000},
        "metadata": {"user_id": "u"},
    },
}


class Token(Credentials):
    """Google's credentials that hold a token and never need another."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # it has no types
        self.token = "t-1"

    @property
    def valid(self) -> bool:
        return True

    def refresh(self, request: Any) -> None:
        raise AssertionError("it never ends")


@pytest.fixture(scope="module")
def server() -> Iterator[CaptureServer]:
    with capture_server() as running:
        yield running


def sent(server: CaptureServer, call: Callable[[], Any]) -> Captured:
    """Return what a client sends."""
    with pytest.raises(REFUSED):
        call()
    return server.taken()


def ours(
    kind: str,
    operation: str,
    model: str,
    body: Mapping[str, Any] | bytes,
    *,
    streamed: bool,
    credential: Credential,
    headers: Mapping[str, str] | None = None,
    **said: Any,
) -> ProviderCall:
    """Return what this node sends for a client's own body, whose name of the model is another one."""
    spec = parse_provider("a", {"kind": kind, "credentials": "none", **said}).spec
    raw = body if isinstance(body, bytes) else json.dumps({"model": "public", **body}).encode()
    return provider_call(
        spec,
        operation,
        model,
        raw,
        streamed=streamed,
        credential=credential,
        now=0.0,
        headers=headers,
    )


def assert_twins(made: ProviderCall, captured: Captured, *dropped: str) -> None:
    """Both go to the same place with the same credentials, versions and fields; `dropped` are fields of one of them."""
    assert Captured(made.url.target, {}, b"").place == captured.place
    said = {name: captured.headers[name] for name in AUTH if name in captured.headers}
    assert {name: value for name, value in made.headers.items() if name in AUTH} == said
    fields, twin = json.loads(made.body), captured.fields
    for name in dropped:
        fields.pop(name, None)
        twin.pop(name, None)
    assert fields == twin


CLAUDES: Final[Mapping[str, tuple[str, str, Credential, dict[str, Any], Callable[[str], Any]]]] = {
    "anthropic": (
        "anthropic",
        "",
        KEY,
        {},
        lambda url: anthropic.Anthropic(api_key="k-1", base_url=url, max_retries=0),
    ),
    "vertex_anthropic": (
        "vertex_anthropic",
        "/v1",
        TOKEN,
        {"project": "p-1", "location": "eu"},
        lambda url: anthropic.AnthropicVertex(
            access_token="t-1", project_id="p-1", region="eu", base_url=url, max_retries=0
        ),
    ),
    "bedrock_invoke": (
        "bedrock_invoke",
        "",
        KEY,
        {"region": "eu-west-1"},
        lambda url: anthropic.AnthropicBedrock(
            api_key="k-1", aws_region="eu-west-1", base_url=url, max_retries=0
        ),
    ),
    "mantle": (
        "mantle",
        "/anthropic",
        KEY,
        {"region": "eu-west-1"},
        lambda url: anthropic.AnthropicBedrockMantle(
            api_key="k-1", aws_region="eu-west-1", base_url=url, max_retries=0
        ),
    ),
    "foundry with a key": (
        "foundry",
        "/anthropic",
        KEY,
        {},
        lambda url: anthropic.AnthropicFoundry(api_key="k-1", base_url=url, max_retries=0),
    ),
    "foundry with a token": (
        "foundry",
        "/anthropic",
        TOKEN,
        {},
        lambda url: anthropic.AnthropicFoundry(
            azure_ad_token_provider=lambda: "t-1", base_url=url, max_retries=0
        ),
    ),
    "claude_aws": (
        "claude_aws",
        "",
        KEY,
        {"region": "eu-west-1", "workspace": "w-1"},
        lambda url: anthropic.AnthropicAWS(
            api_key="k-1", workspace_id="w-1", aws_region="eu-west-1", base_url=url, max_retries=0
        ),
    ),
    "claude_gcp": (
        "claude_gcp",
        "/v1/projects/p-1/locations/global/workspaces/w-1/invoke",
        TOKEN,
        {"project": "p-1", "workspace": "w-1"},
        lambda url: anthropic.AnthropicGoogleCloud(
            credentials=Token(), project="p-1", workspace_id="w-1", base_url=url, max_retries=0
        ),
    ),
}
"""Hosting of Claude to its kind, where its base begins, its credential, its site, and its official client."""
_BASES_WITH_PATHS: Final = ("foundry", "claude_gcp")


@pytest.mark.parametrize("wish", WISHES)
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", CLAUDES)
def test_claude_is_called_as_its_client_calls_it(
    name: str, streamed: bool, wish: str, server: CaptureServer
) -> None:
    kind, path, credential, site, client = CLAUDES[name]
    fields = {**WISHES[wish], "stream": streamed}
    with client(server.url + path) as twin:
        captured = sent(
            server,
            lambda: twin.messages.create(model=CLAUDE, extra_headers=BETAS, **fields),
        )
    base = server.url + (path if kind in _BASES_WITH_PATHS else "")
    made = ours(
        kind,
        hosting.MESSAGES,
        CLAUDE,
        fields,
        streamed=streamed,
        credential=credential,
        headers=BETAS,
        base=base,
        **site,
    )
    assert_twins(made, captured)
    if kind == "bedrock_invoke":
        # Its client names them in both places, and they count in the body.
        assert captured.fields["anthropic_beta"] == BETAS["anthropic-beta"].split(",")
    else:
        assert made.headers["anthropic-beta"] == captured.headers["anthropic-beta"]


COUNTING: Final = ("anthropic", "vertex_anthropic", "foundry with a key", "claude_gcp")


@pytest.mark.parametrize("name", COUNTING)
def test_tokens_of_claude_are_counted_as_its_client_counts_them(
    name: str, server: CaptureServer
) -> None:
    kind, path, credential, site, client = CLAUDES[name]
    messages: list[Any] = [{"role": "user", "content": "hi"}]
    with client(server.url + path) as twin:
        captured = sent(server, lambda: twin.messages.count_tokens(model=CLAUDE, messages=messages))
    base = server.url + (path if kind in _BASES_WITH_PATHS else "")
    made = ours(
        kind,
        hosting.COUNT_MESSAGES,
        CLAUDE,
        {"messages": messages},
        streamed=False,
        credential=credential,
        base=base,
        **site,
    )
    assert_twins(made, captured)


def openai_client(url: str) -> openai.OpenAI:
    return openai.OpenAI(
        api_key="k-1", base_url=url, organization="org-1", project="proj-1", max_retries=0
    )


def azure_client(url: str) -> openai.OpenAI:
    return openai.AzureOpenAI(
        api_key="k-1", azure_endpoint=url, api_version="2025-03-01-preview", max_retries=0
    )


def entra_client(url: str) -> openai.OpenAI:
    return openai.AzureOpenAI(
        azure_ad_token="t-1", azure_endpoint=url, api_version="2025-03-01-preview", max_retries=0
    )


DATED: Final = {"api_version": "2025-03-01-preview"}
OPENAIS: Final[list[tuple[str, str, str, Credential, dict[str, Any], Callable[[str], Any]]]] = [
    ("openai", "/v1", "/v1", KEY, {"organization": "org-1", "project": "proj-1"}, openai_client),
    ("azure_dated", "", "/openai", KEY, DATED, azure_client),
    ("azure_dated", "", "/openai", TOKEN, DATED, entra_client),
    (
        "openai_like",
        "/api/paas/v4",
        "/api/paas/v4",
        KEY,
        {},
        lambda url: openai.OpenAI(api_key="k-1", base_url=url, max_retries=0),
    ),
    (
        "xai",
        "/v1",
        "/v1",
        KEY,
        {},
        lambda url: openai.OpenAI(api_key="k-1", base_url=url, max_retries=0),
    ),
]
MODEL: Final = "my deployment"
OPENAI_WISHES: Final[Mapping[str, tuple[str, Callable[[openai.OpenAI, Any], Any], Any]]] = {
    "chat": (
        hosting.CHAT,
        lambda client, said: client.chat.completions.create(model=MODEL, **said),
        {
            "messages": [{"role": "user", "content": "Grüße"}],
            "tools": [{"type": "function", "function": {"name": "t", "parameters": {}}}],
            "temperature": 0.5,
        },
    ),
    "responses": (
        hosting.RESPONSES,
        lambda client, said: client.responses.create(model=MODEL, **said),
        {"input": "hi", "store": False, "include": ["reasoning.encrypted_content"]},
    ),
    "completions": (
        hosting.COMPLETIONS,
        lambda client, said: client.completions.create(model=MODEL, **said),
        {"prompt": "hi", "max_tokens": 3},
    ),
    "embeddings": (
        hosting.EMBEDDINGS,
        lambda client, said: client.embeddings.create(model=MODEL, **said),
        {"input": ["hi"], "encoding_format": "float"},
    ),
}


@pytest.mark.parametrize("wish", OPENAI_WISHES)
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("at", range(len(OPENAIS)))
def test_openais_api_is_called_as_its_client_calls_it(
    at: int, streamed: bool, wish: str, server: CaptureServer
) -> None:
    kind, client_path, path, credential, site, client = OPENAIS[at]
    operation, call, said = OPENAI_WISHES[wish]
    if kind == "xai" and operation not in (hosting.CHAT, hosting.RESPONSES):
        operation, call, said = OPENAI_WISHES["chat"]
    fields = said if operation == hosting.EMBEDDINGS else {**said, "stream": streamed}
    with client(server.url + client_path) as twin:
        captured = sent(server, lambda: call(twin, fields))
    made = ours(
        kind,
        operation,
        MODEL,
        fields,
        streamed=streamed,
        credential=credential,
        base=server.url + path,
        **site,
    )
    # Asked for by this node, for its accounts.
    assert_twins(made, captured, "stream_options")
    counted = operation in (hosting.CHAT, hosting.COMPLETIONS)
    assert made.usage_added == (streamed and counted)


GOOGLES: Final[list[tuple[str, str, Credential, dict[str, Any], str]]] = [
    ("gemini", "gemini-3 pro", KEY, {}, "v1beta"),
    ("gemini", "tunedModels/my tuned", KEY, {}, "v1beta"),
    ("gemini", "models/gemini-3", KEY, {"api_version": "v1"}, "v1"),
    ("vertex", "gemini-3-pro", TOKEN, {"project": "p-1", "location": "europe-west4"}, "v1"),
    ("vertex", "meta/llama-5", TOKEN, {"project": "p-1", "location": "eu"}, "v1"),
    (
        "vertex",
        "projects/9/locations/us-central1/endpoints/7",
        TOKEN,
        {"project": "p-1", "location": "global", "api_version": "v1beta1"},
        "v1beta1",
    ),
]


def google_client(kind: str, url: str, version: str, site: Mapping[str, Any]) -> Client:
    options: Any = {"base_url": url, "api_version": version}
    if kind == "gemini":
        return Client(api_key="k-1", http_options=options)
    return Client(
        vertexai=True,
        project=site["project"],
        location=site["location"],
        credentials=Token(),
        http_options=options,
    )


@pytest.mark.parametrize("operation", ["whole", "streamed", "count"])
@pytest.mark.parametrize("at", range(len(GOOGLES)))
def test_google_is_called_as_its_client_calls_it(
    at: int, operation: str, server: CaptureServer
) -> None:
    kind, model, credential, site, version = GOOGLES[at]
    with google_client(kind, server.url, version, site) as twin:
        calls: Mapping[str, Callable[[], Any]] = {
            "whole": lambda: twin.models.generate_content(model=model, contents="hi"),
            "streamed": lambda: list(
                twin.models.generate_content_stream(model=model, contents="hi")
            ),
            "count": lambda: twin.models.count_tokens(model=model, contents="hi"),
        }
        captured = sent(server, calls[operation])
    made = ours(
        kind,
        hosting.COUNT_CONTENT if operation == "count" else hosting.GENERATE_CONTENT,
        model,
        captured.body,
        streamed=operation == "streamed",
        credential=credential,
        base=server.url,
        **site,
    )
    assert_twins(made, captured)
    assert made.body == captured.body


@pytest.mark.parametrize("streamed", [False, True])
def test_interactions_are_called_as_googles_client_calls_them(
    streamed: bool, server: CaptureServer
) -> None:
    with (
        google_client("gemini", server.url, "v1beta", {}) as twin,
        pytest.raises(Exception, match="captured"),
    ):
        twin.interactions.create(model="gemini-3", input="hi", stream=streamed)
    captured = server.taken()
    made = ours(
        "gemini",
        hosting.INTERACTIONS,
        "gemini-3",
        {"input": "hi", "stream": streamed},
        streamed=streamed,
        credential=KEY,
        base=server.url,
    )
    assert_twins(made, captured)
