"""Google's official client as judge of what is written for vendors of Gemini models: its types, and its own bodies."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from google.genai import Client, types
from google.genai.client import AsyncClient
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.generation.request import GenerateRequest
from smg_node.dialects.gemini.signatures import standard
from smg_node.dialects.gemini.spelling import snake_case
from smg_node.dialects.provider_dialect import WriterOptions
from support.answers.gemini_bodies import parsed
from support.providers.generate_content import API, USED, answer, call, sse, text, thought
from support.providers.generate_content_wishes import MODELS, wishes, written
from support.tools.example_counts import example_count

pytestmark: Final = [
    pytest.mark.conformance,
    # The client derives a class from one of aiohttp's, which aiohttp would rather not have.
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
]

NEW: Final = "gemini-3-pro-preview"
TYPES: Final[dict[str, Any]] = {
    "contents": types.Content,
    "systemInstruction": types.Content,
    "tools": types.Tool,
    "toolConfig": types.ToolConfig,
    "generationConfig": types.GenerationConfig,
}
"""They refuse keys that they do not know."""


@settings(max_examples=example_count(150), deadline=None)
@given(wishes(), st.sampled_from(MODELS))
def test_the_types_of_the_client_take_whatever_is_written(
    wish: GenerateRequest, model: str
) -> None:
    fields = json.loads(json.dumps(written(wish, model).fields))
    assert fields.keys() <= TYPES.keys()
    for key, value in fields.items():
        for one in value if isinstance(value, list) else [value]:
            TYPES[key].model_validate_json(json.dumps(one))


# ── Bodies of the client ─────────────────────────────────────────────────────


@asynccontextmanager
async def capturing(*answers: bytes) -> AsyncIterator[tuple[list[web.Request], AsyncClient]]:
    """A vendor that keeps what it is asked, and a client of it."""
    asked, left = list[web.Request](), list(answers)

    async def answered(request: web.Request) -> web.Response:
        await request.read()
        asked.append(request)
        kind = "text/event-stream" if request.query.get("alt") == "sse" else "application/json"
        return web.Response(body=left.pop(0), content_type=kind)

    app = web.Application()
    app.router.add_post("/{path:.*}", answered)
    async with TestServer(app) as server:
        options = types.HttpOptions(base_url=str(server.make_url("/")))
        async with Client(api_key="k", http_options=options).aio as client:
            yield asked, client


def spelled(value: Any, key: str = "") -> Any:
    """Return a body with the API's own keys and signatures in one spelling each; the client has two."""
    if isinstance(value, dict) and key not in ("args", "response"):
        return {snake_case(name): spelled(one, snake_case(name)) for name, one in value.items()}
    if key == "thought_signature":
        return standard(value)
    return [spelled(one) for one in value] if isinstance(value, list) else value


CONFIGS: Final[list[dict[str, Any]]] = [
    {},
    {"system_instruction": "be brief", "temperature": 0.5, "top_p": 0.25, "top_k": 3},
    {"max_output_tokens": 9, "stop_sequences": ["x"], "seed": 5},
    {"response_logprobs": True, "logprobs": 3, "presence_penalty": 0.5, "frequency_penalty": -1.0},
    {"response_mime_type": "application/json", "response_json_schema": {"type": "object"}},
    {"response_mime_type": "application/json"},
    {"thinking_config": {"include_thoughts": True, "thinking_level": "LOW"}},
    {"thinking_config": {"include_thoughts": True, "thinking_level": "HIGH"}},
    *(
        {
            "tools": [
                {
                    "function_declarations": [
                        {"name": "f", "description": "Does.", "parameters_json_schema": {"type": "object"}},
                        {"name": "g"},
                    ]
                }
            ],
            "tool_config": {"function_calling_config": calling},
        }
        for calling in (
            {"mode": "ANY"},
            {"mode": "NONE"},
            {"mode": "ANY", "allowed_function_names": ["g"]},
            {"mode": "VALIDATED", "allowed_function_names": ["f"]},
            {"mode": "VALIDATED"},
        )
    ),
]  # fmt: skip
HISTORY: Final[list[dict[str, Any]]] = [
    {
        "role": "user",
        "parts": [
            {"text": "what?"},
            {"inline_data": {"mime_type": "image/png", "data": b"abc"}},
            {"file_data": {"mime_type": "application/pdf", "file_uri": "https://x/y.pdf"}},
        ],
    },
    {
        "role": "model",
        "parts": [
            {"text": "let me see", "thought_signature": b"sig\xff\xfe"},
            {"function_call": {"name": "f", "args": {"a": 1}, "id": "1"}, "thought_signature": b"t"},
            {"function_call": {"name": "g", "args": {}, "id": "2"}},
        ],
    },
    {
        "role": "user",
        "parts": [
            {
                "function_response": {
                    "name": "f",
                    "id": "1",
                    "response": {"output": "yes"},
                    "parts": [{"inline_data": {"mime_type": "image/png", "data": b"zz"}}],
                }
            },
            {"function_response": {"name": "g", "id": "2", "response": {"found": [1]}}},
            {"text": "and?"},
        ],
    },
]  # fmt: skip


@pytest.mark.parametrize("config", CONFIGS)
async def test_what_the_client_asks_is_written_as_the_client_wrote_it(
    config: dict[str, Any],
) -> None:
    told = types.GenerateContentConfig.model_validate(config)
    contents: Any = [types.Content.model_validate(content) for content in HISTORY]
    async with capturing(json.dumps(answer(text("a"), finish="STOP")).encode()) as (asked, client):
        await client.models.generate_content(model=NEW, contents=contents, config=told)
    body = json.loads(await asked[0].read())
    again = API.write(parsed(body).request, WriterOptions(NEW, "google"))
    wrote = json.loads(json.dumps(again.fields))
    # Thoughts are always asked for: whether a client sees them is for its presenter.
    shown = wrote.setdefault("generationConfig", {}).setdefault("thinkingConfig", {})
    assert shown.pop("includeThoughts") is True
    meant = spelled(body)
    meant.setdefault("generation_config", {}).setdefault("thinking_config", {}).pop("include_thoughts", None)  # fmt: skip
    meant.get("system_instruction", {}).pop("role", None)
    assert spelled(wrote) == meant
    assert again.ignored == ()


async def test_where_the_client_asks() -> None:
    stream, whole = (
        sse(answer(text("a"), finish="STOP")),
        json.dumps(answer(finish="STOP")).encode(),
    )
    async with capturing(stream, whole) as (asked, client):
        async for _ in await client.models.generate_content_stream(model=NEW, contents="hi"):
            pass
        await client.models.generate_content(model=NEW, contents="hi")
    assert [(one.path, one.query_string) for one in asked] == [
        (f"/v1/models/{NEW}:streamGenerateContent", "alt=sse"),
        (f"/v1/models/{NEW}:generateContent", ""),
    ]
    assert asked[0].headers["x-goog-api-key"] == "k"
    for one in asked:
        assert not {"model", "stream"} & json.loads(await one.read()).keys()


async def test_what_the_client_hears_is_what_is_heard_here() -> None:
    events = [
        answer(thought("hm"), usageMetadata=USED),
        answer(text("Hi"), usageMetadata=USED),
        answer(call("f", {"a": 1}, "c2ln"), finish="STOP", usageMetadata=USED),
    ]
    async with capturing(sse(*events)) as (_, client):
        stream = await client.models.generate_content_stream(model=NEW, contents="hi")
        parts = [part for chunk in [one async for one in stream] for part in chunk.parts or []]
    assert [(part.thought, part.text, part.thought_signature) for part in parts] == [
        (True, "hm", None),
        (None, "Hi", None),
        (None, None, b"sig"),
    ]
