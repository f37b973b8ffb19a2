"""Anthropic's official clients as twins: for the same wish they send what this node sends to each hosting of Claude."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import anthropic
import pytest

from smg_node.providers import hosting
from smg_node.providers.provider_call import Credential
from support.providers.capture_server import CaptureServer, capture_server
from support.providers.client_twins import KEY, TOKEN, Token, assert_twins, ours, sent

pytestmark: Final = pytest.mark.conformance

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


@pytest.fixture(scope="module")
def server() -> Iterator[CaptureServer]:
    with capture_server() as running:
        yield running


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
