"""OpenAI's and Google's official clients as twins: for the same wish they send what this node sends to each hosting."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import openai
import pytest
from google.genai import Client

from smg_node.providers import hosting
from smg_node.providers.provider_call import Credential
from support.providers.capture_server import CaptureServer, capture_server
from support.providers.client_twins import KEY, TOKEN, Token, assert_twins, ours, sent

pytestmark: Final = pytest.mark.conformance


@pytest.fixture(scope="module")
def server() -> Iterator[CaptureServer]:
    with capture_server() as running:
        yield running


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
