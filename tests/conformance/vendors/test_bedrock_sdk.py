"""AWS's official client, and Anthropic's for Bedrock, as judges of the stand-ins of Bedrock: signatures and frames."""

import json
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import anthropic
import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, EventStreamError

from support.providers.stand_ins import KEY, KEY_ID, SECRET, stand_in, threaded_stand_in

pytestmark: Final = pytest.mark.conformance

CLAUDE: Final = "us.anthropic.claude-haiku-4-5-20251001-v1:0"
REGION: Final = "eu-central-1"
OSS: Final = "openai.gpt-oss-120b-1:0"
HELLO: Final = "You said: hello (turns=1)"
SCHEMA: Final = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
TOOLS: Final[Any] = {"tools": [{"toolSpec": {"name": "weather", "inputSchema": {"json": SCHEMA}}}]}
THINKS: Final[Any] = {"thinking": {"type": "enabled", "budget_tokens": 1_024}}


def user(text: str) -> Any:
    return [{"role": "user", "content": [{"text": text}]}]


@contextmanager
def asking(kind: str = "bedrock", secret: str = SECRET, **settings: Any) -> Iterator[Any]:
    """A client of a stand-in, which does not try again."""
    with threaded_stand_in(kind, **settings) as where:
        client = boto3.client(
            "bedrock-runtime",
            region_name=REGION,
            endpoint_url=where.url,
            aws_access_key_id=KEY_ID,
            aws_secret_access_key=secret,
            config=Config(retries={"max_attempts": 1, "mode": "standard"}),
        )
        try:
            yield client
        finally:
            client.close()


def test_a_signed_conversation_says_the_same_streamed_and_whole() -> None:
    with asking() as client:
        whole = client.converse(modelId=CLAUDE, messages=user("hello"))
        assert whole["output"]["message"]["content"] == [{"text": HELLO}]
        usage = whole["usage"]
        assert (whole["stopReason"], usage["outputTokens"]) == ("end_turn", 4)
        assert usage["totalTokens"] == usage["inputTokens"] + 4
        events = list(client.converse_stream(modelId=CLAUDE, messages=user("hello"))["stream"])
        names = [next(iter(event)) for event in events]
        assert names == [
            "messageStart",
            *["contentBlockDelta"] * 4,
            "contentBlockStop",
            "messageStop",
            "metadata",
        ]
        said = [event["contentBlockDelta"]["delta"]["text"] for event in events[1:5]]
        assert "".join(said) == HELLO
        assert events[-1]["metadata"]["usage"] == usage
        counted = client.count_tokens(
            modelId=CLAUDE, input={"converse": {"messages": user("hello")}}
        )
        assert counted["inputTokens"] == usage["inputTokens"]


def _joined(events: list[Any]) -> list[Any]:
    """Return the blocks of a stream, put together."""
    blocks: dict[int, Any] = {}
    for event in events:
        if start := event.get("contentBlockStart"):
            blocks[start["contentBlockIndex"]] = {
                "toolUse": {**start["start"]["toolUse"], "input": ""}
            }
        if delta := event.get("contentBlockDelta"):
            at, piece = delta["contentBlockIndex"], delta["delta"]
            if "toolUse" in piece:
                blocks[at]["toolUse"]["input"] += piece["toolUse"]["input"]
            elif "reasoningContent" in piece:
                thought = blocks.setdefault(
                    at, {"reasoningContent": {"reasoningText": {"text": ""}}}
                )
                text = thought["reasoningContent"]["reasoningText"]
                for key, value in piece["reasoningContent"].items():
                    text[key] = text.get(key, "") + value
            else:
                blocks.setdefault(at, {"text": ""})["text"] += piece["text"]
    for block in blocks.values():
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"])
    return list(blocks.values())


def test_signed_thoughts_go_around_a_call_unchanged() -> None:
    with asking() as client:
        asked: Any = {"modelId": CLAUDE, "toolConfig": TOOLS}
        asked["additionalModelRequestFields"] = THINKS
        messages = user("call weather city=Paris")
        whole = client.converse(messages=messages, **asked)["output"]["message"]
        stream = client.converse_stream(messages=messages, **asked)["stream"]
        assert _joined(list(stream)) == whole["content"]
        call = whole["content"][1]["toolUse"]
        assert call["input"] == {"city": "Paris"}
        result = {"toolUseId": call["toolUseId"], "content": [{"text": "sunny"}]}
        messages += [whole, {"role": "user", "content": [{"toolResult": result}]}]
        after = client.converse(messages=messages, **asked)["output"]["message"]["content"]
        assert after[1] == {"text": "The results are: sunny"}

        whole["content"][0]["reasoningContent"]["reasoningText"]["text"] += "!"
        with pytest.raises(ClientError, match="Invalid `signature`"):
            client.converse(messages=messages, **asked)
        del whole["content"][0]
        with pytest.raises(ClientError, match="Expected `thinking`"):
            client.converse(messages=messages, **asked)


def test_open_models_send_an_empty_text_first() -> None:
    with asking() as client:
        events = list(client.converse_stream(modelId=OSS, messages=user("hello"))["stream"])
        assert events[1]["contentBlockDelta"] == {"contentBlockIndex": 0, "delta": {"text": ""}}
        kinds = [next(iter(block)) for block in _joined(events)]
        assert kinds == ["text", "reasoningContent", "text"]


def test_cache_points_are_written_once_and_read_afterwards() -> None:
    with asking(cache_min_tokens=100) as client:
        system = [{"text": "long " * 200}, {"cachePoint": {"type": "default", "ttl": "1h"}}]
        asked: Any = {"modelId": CLAUDE, "system": system}
        first = client.converse(messages=user("hello"), **asked)["usage"]
        second = client.converse(messages=user("again"), **asked)["usage"]
        written = first["cacheWriteInputTokens"]
        assert first["cacheDetails"] == [{"inputTokens": written, "ttl": "1h"}]
        assert (second["cacheReadInputTokens"], second["cacheWriteInputTokens"]) == (written, 0)
        assert first["totalTokens"] == first["inputTokens"] + written + first["outputTokens"]


REFUSED: Final[Any] = (
    ({"secret": "wrong"}, {}, "InvalidSignatureException"),
    ({"keys": ("another",)}, {}, "UnrecognizedClientException"),
    ({}, {"modelId": "amazon.nothing-v1:0"}, "ValidationException"),
    ({}, {"messages": user("a") + user("b")}, "ValidationException"),
    ({"faults": ("status:reason=rate",)}, {}, "ThrottlingException"),
    ({"faults": ("status:reason=overloaded",)}, {}, "ModelNotReadyException"),
    ({"faults": ("status:reason=unavailable",)}, {}, "ServiceUnavailableException"),
)


@pytest.mark.parametrize(("settings", "fields", "code"), REFUSED)
def test_refusals_are_the_exceptions_of_the_client(settings: Any, fields: Any, code: str) -> None:
    with asking(**settings) as client:
        asked = {"modelId": CLAUDE, "messages": user("hello"), **fields}
        with pytest.raises(ClientError) as raised:
            client.converse(**asked)
        assert raised.value.response["Error"]["Code"] == code


def test_an_exception_inside_the_stream_is_raised_there() -> None:
    with asking(faults=("error:after=3,reason=rate",)) as client:
        stream = client.converse_stream(modelId=CLAUDE, messages=user("hello"))["stream"]
        with pytest.raises(EventStreamError, match="throttlingException"):
            list(stream)
        stream.close()


def test_a_session_token_and_an_encoded_model_are_signed() -> None:
    arn = "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-5"
    with threaded_stand_in(
        "bedrock", keys=(f"{KEY_ID}:{SECRET}:session/token=",), models=(arn,)
    ) as where:
        client = boto3.client(
            "bedrock-runtime",
            region_name=REGION,
            endpoint_url=where.url,
            aws_access_key_id=KEY_ID,
            aws_secret_access_key=SECRET,
            aws_session_token="session/token=",
        )
        whole = client.converse(modelId=arn, messages=user("hello"))
        assert whole["output"]["message"]["content"] == [{"text": HELLO}]
        client.close()
        [row] = where.admin("/requests")
        assert "%3A123456789012%3Ainference-profile%2F" in row["path"]


def test_an_invocation_carries_messages() -> None:
    body = {
        "anthropic_version": "2026-10-21",
        "max_tokens": 50,
        "messages": [{"role": "user", "content": "hello"}],
    }
    with asking("bedrock_invoke") as client:
        whole = client.invoke_model(modelId=CLAUDE, body=json.dumps(body))
        message = json.loads(whole["body"].read())
        assert [block["text"] for block in message["content"]] == [HELLO]
        stream = client.invoke_model_with_response_stream(modelId=CLAUDE, body=json.dumps(body))
        events = [json.loads(event["chunk"]["bytes"]) for event in stream["body"]]
        assert events[0]["type"] == "message_start"
        assert events[-1]["amazon-bedrock-invocationMetrics"]["outputTokenCount"] == 4
        counted = client.count_tokens(
            modelId=CLAUDE, input={"invokeModel": {"body": json.dumps(body).encode()}}
        )
        assert counted["inputTokens"] == message["usage"]["input_tokens"]
        for extra in ({"model": CLAUDE}, {"stream": True}):
            with pytest.raises(ClientError, match="Extra inputs are not permitted"):
                client.invoke_model(modelId=CLAUDE, body=json.dumps(body | extra))


@asynccontextmanager
async def asking_anthropic(**credentials: Any) -> AsyncIterator[Any]:
    async with (
        stand_in("bedrock_invoke") as (where, _),
        anthropic.AsyncAnthropicBedrock(
            aws_region=REGION, base_url=where.url, max_retries=0, **credentials
        ) as client,
    ):
        yield client


@pytest.mark.parametrize(
    "credentials",
    [{"api_key": KEY}, {"aws_access_key": KEY_ID, "aws_secret_key": SECRET}],
    ids=["bearer", "signature"],
)
async def test_the_client_of_anthropic_is_let_in_either_way(credentials: Any) -> None:
    async with asking_anthropic(**credentials) as client:
        asked: Any = {"model": CLAUDE, "max_tokens": 100}
        asked["messages"] = [{"role": "user", "content": "hello"}]
        whole = await client.messages.create(**asked)
        assert [block.text for block in whole.content] == [HELLO]
        async with client.messages.stream(**asked) as stream:
            assert await stream.get_final_text() == HELLO


def test_blobs_of_redacted_thoughts_come_back_as_they_were() -> None:
    with asking() as client:
        asked: Any = {"modelId": CLAUDE, "additionalModelRequestFields": THINKS}
        first = client.converse(messages=user("redact it"), **asked)["output"]["message"]
        blob = first["content"][0]["reasoningContent"]["redactedContent"]
        again = [*user("redact it"), first, *user("hello")]
        whole = client.converse(messages=again, **asked)
        assert whole["stopReason"] == "end_turn"
        first["content"][0]["reasoningContent"]["redactedContent"] = b64encode(blob)
        with pytest.raises(ClientError, match="Invalid `signature`"):
            client.converse(messages=again, **asked)
