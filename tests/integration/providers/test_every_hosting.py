"""Every client API in front of every hosting: the official clients are answered, streamed and not, with calls and thoughts.

The vendors are stand-ins that check what vendors check: credentials, signatures of requests, the order of turns.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import anthropic
import openai
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from google import genai
from google.genai import types
from openai.types.responses import Response

from support.processes.node import RunningNode, running_node
from support.providers.stand_ins import KEY, KEY_ID, SECRET, StandIn, running_stand_ins

pytestmark = pytest.mark.integration

AWS = {"credentials": {"kind": "aws", "access_key_id": KEY_ID, "secret_access_key": SECRET}}
KEYS = {"keys": [KEY]}
GCP: dict[str, Any] = {"credentials": {"kind": "gcp"}}
"""The file of its service account is made for each run."""
# Kind of hosting: what else its definition says, and the vendor's name of a model.
HOSTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "openai": (KEYS, "gpt-4.1-mini"),
    "anthropic": (KEYS, "claude-sonnet-5"),
    "gemini": (KEYS, "gemini-2.5-flash"),
    "vertex": ({**GCP, "project": "p", "location": "eu"}, "gemini-2.5-flash"),
    "vertex_anthropic": ({**GCP, "project": "p", "location": "eu"}, "claude-sonnet-5"),
    "bedrock": ({**AWS, "region": "eu-central-1"}, "eu.anthropic.claude-sonnet-5"),
    "bedrock_invoke": ({**AWS, "region": "eu-central-1"}, "eu.anthropic.claude-sonnet-5"),
    "mantle": ({**AWS, "region": "eu-central-1"}, "openai.gpt-oss-120b"),
    "azure": (KEYS, "gpt-4.1-mini"),
    "azure_dated": ({**KEYS, "api_version": "2024-10-21"}, "gpt-4.1-mini"),
    "foundry": (KEYS, "claude-sonnet-5"),
    "claude_aws": ({**AWS, "region": "eu-central-1", "workspace": "wrkspc_1"}, "claude-sonnet-5"),
    "claude_gcp": (
        {**GCP, "project": "p", "location": "eu", "workspace": "w"},
        "claude-sonnet-5",
    ),
    "xai": (KEYS, "grok-4.5"),
    "openai_like": (KEYS, "model-large"),
}
TOOL = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}


@dataclass(frozen=True)
class World:
    node: RunningNode
    vendors: Mapping[str, StandIn]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    scratch = tmp_path_factory.mktemp("vendors")
    kinds = [word for kind in HOSTINGS for word in ("--kind", kind)]
    with ExitStack() as stack:
        stands, _ = stack.enter_context(running_stand_ins(scratch, *kinds, "--model", "*"))
        vendors = dict(zip(HOSTINGS, stands, strict=True))
        account = service_account(f"{stands[0].url}/_vendor/token")
        GCP["credentials"]["service_account"] = account
        said = {
            name_of(kind): {"kind": kind, "base": base_of(kind, vendors[kind]), **more}
            for kind, (more, _) in HOSTINGS.items()
        }
        routes = {
            f"m-{kind}": {"targets": [f"{name_of(kind)}/{model}"]}
            for kind, (_, model) in HOSTINGS.items()
        }
        file = scratch / "providers.json"
        file.write_text(json.dumps({"providers": said, "routes": routes}))
        flags = ("--providers", str(file), "--readiness.min-workers", str(len(HOSTINGS)))
        node = stack.enter_context(running_node(scratch / "node", flags=flags))
        node.process.wait_until(lambda: node.status("/readiness") == 200, "ready", 60)
        yield World(node, vendors)


def name_of(kind: str) -> str:
    return f"at-{kind}".replace("_", "-")


def base_of(kind: str, vendor: StandIn) -> str:
    """Return the base of a provider; that of Claude at Google names the workspace."""
    if kind == "claude_gcp":
        return f"{vendor.url}/v1/projects/p/locations/eu/workspaces/w/invoke"
    return vendor.base


def service_account(token_url: str) -> str:
    """Return the text of a service account's file, whose tokens come from there."""
    key = generate_private_key(public_exponent=65_537, key_size=2_048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    account = {
        "type": "service_account",
        "client_email": "node@p.iam.gserviceaccount.com",
        "private_key": pem,
        "token_uri": token_url,
    }
    return json.dumps(account)


# ── One exchange in each API ─────────────────────────────────────────────────


def by_chat(url: str, model: str, text: str, *, stream: bool) -> str:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    messages: Any = [{"role": "user", "content": text}]
    if not stream:
        said = client.chat.completions.create(model=model, messages=messages, max_tokens=2000)
        assert said.model == model
        assert said.usage is not None
        assert said.usage.completion_tokens > 0
        assert said.choices[0].finish_reason == "stop"
        return said.choices[0].message.content or ""
    with client.chat.completions.stream(
        model=model, messages=messages, max_tokens=2000, stream_options={"include_usage": True}
    ) as events:
        whole = events.get_final_completion()
    assert whole.usage is not None
    assert whole.usage.completion_tokens > 0
    assert whole.choices[0].finish_reason == "stop"
    return whole.choices[0].message.content or ""


def by_messages(url: str, model: str, text: str, *, stream: bool) -> str:
    client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
    asked: Any = {
        "model": model,
        "max_tokens": 2000,
        "messages": [{"role": "user", "content": text}],
    }
    if stream:
        with client.messages.stream(**asked) as events:
            said = events.get_final_message()
    else:
        said = client.messages.create(**asked)
    assert said.model == model
    assert said.stop_reason == "end_turn"
    assert said.usage.output_tokens > 0
    return "".join(block.text for block in said.content if block.type == "text")


def by_responses(url: str, model: str, text: str, *, stream: bool) -> str:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    if not stream:
        return answered(client.responses.create(model=model, input=text))
    with client.responses.stream(model=model, input=text) as events:
        return answered(events.get_final_response())


def answered(said: Response) -> str:
    assert said.status == "completed"
    assert said.usage is not None
    assert said.usage.output_tokens > 0
    return said.output_text


def by_contents(url: str, model: str, text: str, *, stream: bool) -> str:
    client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=url))
    if stream:
        parts = list(client.models.generate_content_stream(model=model, contents=text))
        assert parts[-1].candidates is not None
        assert parts[-1].candidates[0].finish_reason == types.FinishReason.STOP
        return "".join(part.text or "" for part in parts)
    said = client.models.generate_content(model=model, contents=text)
    assert said.usage_metadata is not None
    assert said.usage_metadata.candidates_token_count
    return said.text or ""


APIS: dict[str, Callable[..., str]] = {
    "chat": by_chat,
    "messages": by_messages,
    "responses": by_responses,
    "generate_content": by_contents,
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("kind", HOSTINGS)
def test_a_client_of_any_api_is_answered_by_any_hosting(
    world: World, kind: str, api: str, stream: bool
) -> None:
    told = APIS[api](world.node.url, f"m-{kind}", "good morning", stream=stream)
    assert told.startswith("You said: good morning")
