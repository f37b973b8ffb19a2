"""Bodies of Converse: what a request becomes, checked by the API's own model."""

from typing import Any

from smg_node.core.generation.request import ChatPrompt, GenerateRequest, Sampling, Tool, Turn
from smg_node.dialects.converse.dialect import converse_provider
from smg_node.dialects.provider_dialect import WriterOptions, Written
from support.providers.converse_judge import refusal

CLAUDE = WriterOptions("eu.anthropic.claude-sonnet-5-v1:0", "anthropic")
NOVA = WriterOptions("eu.amazon.nova-2-lite-v1:0", "bedrock")
GPT = WriterOptions("openai.gpt-oss-120b-1:0", "bedrock")
BY_TOOL = WriterOptions(NOVA.model, "bedrock", quirks=frozenset({"schema_by_tool"}))
FOUND_OUT = WriterOptions(NOVA.model, "bedrock", lacks=frozenset({"outputConfig.textFormat"}))
QWEN = WriterOptions("qwen.qwen3-32b-v1:0", "bedrock")
USER = Turn("user", "Hello")
SAID = {"role": "user", "content": [{"text": "Hello"}]}
TOOL = Tool("look_up", "Looks it up.", {"type": "object", "properties": {}}, where="tools[0]")
SPEC = {
    "toolSpec": {
        "name": "look_up",
        "description": "Looks it up.",
        "inputSchema": {"json": {"type": "object", "properties": {}}},
    }
}


def written(
    *turns: Turn, options: WriterOptions = NOVA, sampling: Sampling | None = None, **prompt: Any
) -> Written:
    """Return what a request becomes, which the API's own model takes."""
    chat = ChatPrompt(turns or (USER,), **prompt)
    request = GenerateRequest("ours", (chat,), sampling or Sampling(), True)
    found = converse_provider(options.model).write(request, options)
    assert refusal(found.fields) == ""
    return found


def fields(*turns: Turn, **given: Any) -> dict[str, Any]:
    return written(*turns, **given).fields


def messages(*turns: Turn, **given: Any) -> Any:
    return fields(*turns, **given)["messages"]


def call_block(call_id: str, name: str = "look_up", **given: Any) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": call_id, "name": name, "input": given}}


def result_block(call_id: str, *content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"toolResult": {"toolUseId": call_id, "content": list(content), **more}}
