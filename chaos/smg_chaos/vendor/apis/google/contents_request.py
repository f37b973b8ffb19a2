"""Request of generateContent: its fields in both spellings, its contents, and what Gemini refuses of them."""

from collections.abc import Mapping
from typing import Any, Final

from smg_chaos.vendor.answers.conversation import Conversation, Segment, Tool
from smg_chaos.vendor.answers.token_counts import text_tokens
from smg_chaos.vendor.apis.body_checks import between, objects, texts, tool_name, typed
from smg_chaos.vendor.apis.call import Call
from smg_chaos.vendor.apis.google.content_turns import ContentTurns, camel_keys
from smg_chaos.vendor.errors.vendor_error import Reason, VendorError, invalid
from smg_chaos.vendor.hostings.operations import Operation
from smg_chaos.vendor.wire.sse import encode

_KNOWN: Final = frozenset(
    [
        "contents",
        "systemInstruction",
        "tools",
        "toolConfig",
        "safetySettings",
        "generationConfig",
        "cachedContent",
        "labels",
        "model",
        "serviceTier",
        "store",
        "modelArmorConfig",
    ]
)
_KNOWN_CONFIG: Final = frozenset(
    [
        "audioTimestamp",
        "candidateCount",
        "enableAffectiveDialog",
        "enableEnhancedCivicAnswers",
        "frequencyPenalty",
        "logprobs",
        "maxOutputTokens",
        "mediaResolution",
        "modelSelectionConfig",
        "presencePenalty",
        "responseFormat",
        "responseJsonSchema",
        "responseLogprobs",
        "responseMimeType",
        "responseModalities",
        "responseSchema",
        "routingConfig",
        "seed",
        "speechConfig",
        "stopSequences",
        "temperature",
        "thinkingConfig",
        "topK",
        "topP",
        "imageConfig",
    ]
)
_KNOWN_COUNT: Final = _KNOWN | {"generateContentRequest", "instances"}
_STOPS_MAX: Final = 5


def read_contents(call: Call) -> Conversation:
    """Return what a request says."""
    counts = call.operation is Operation.COUNT_CONTENTS
    body = camel_keys(call.body)
    _check_known(body, _KNOWN_COUNT if counts else _KNOWN, "")
    if counts and isinstance(body.get("generateContentRequest"), dict):
        body = camel_keys(body["generateContentRequest"])
        _check_known(body, _KNOWN, "generate_content_request.")
    config = camel_keys(typed(body, "generationConfig", dict) or {})
    _check_known(config, _KNOWN_CONFIG, "generation_config.")
    conversation = Conversation(
        model=call.model, streamed=call.operation is Operation.STREAM_GENERATE
    )
    _read_config(call, config, conversation)
    _read_tools(body, conversation)
    _read_system(body, conversation)
    contents = body.get("contents")
    if not contents:
        said = "* GenerateContentRequest.contents: contents is not specified"
        raise invalid(said, "contents")
    if isinstance(contents, dict):
        contents = [contents]
    ContentTurns(call, conversation).read(objects(contents, "contents"))
    return conversation


def _check_known(body: Mapping[str, Any], known: frozenset[str], path: str) -> None:
    for key in body:
        if key not in known:
            where = f" at '{path.rstrip('.')}'" if path else ""
            said = f'Invalid JSON payload received. Unknown name "{key}"{where}: Cannot find field.'
            raise VendorError(Reason.UNKNOWN_FIELD, said, path=path.rstrip("."))


def _read_config(call: Call, config: dict[str, Any], conversation: Conversation) -> None:
    between(typed(config, "temperature", float), 0, 2, "temperature")
    between(typed(config, "topP", float), 0, 1, "top_p")
    most = typed(config, "maxOutputTokens", int)
    between(most, 1, call.traits.output_max, "max_output_tokens")
    conversation.answer_max = most
    conversation.stops = texts(config.get("stopSequences"))
    if len(conversation.stops) > _STOPS_MAX:
        raise invalid("The number of stop sequences must be at most 5.", "stop_sequences")
    thinking = camel_keys(typed(config, "thinkingConfig", dict) or {})
    _read_thinking(call, thinking, conversation)
    mime = config.get("responseMimeType")
    schema = config.get("responseJsonSchema") or config.get("responseSchema")
    if schema is not None:
        if mime not in ("application/json", "text/x.enum"):
            raise invalid(
                "response_schema requires response_mime_type to be 'application/json' or 'text/x.enum'.",
                "generation_config.response_schema",
            )
        conversation.schema = schema
    conversation.wants_json = mime == "application/json"


def _read_thinking(call: Call, thinking: dict[str, Any], conversation: Conversation) -> None:
    budget, level = typed(thinking, "thinkingBudget", int), thinking.get("thinkingLevel")
    if budget is not None and level is not None:
        raise invalid(
            "You can only set only one of thinking budget and thinking level.", "thinking_config"
        )
    if level is not None and not call.traits.signs_calls:
        raise invalid("Thinking level is not supported for this model.", "thinking_config")
    if budget == 0 and call.traits.thinks_always:
        raise invalid(
            "Budget 0 is invalid. This model only works in thinking mode.", "thinking_config"
        )
    conversation.thinks = call.traits.thinks and budget != 0
    conversation.shows_thoughts = thinking.get("includeThoughts") is True


def _read_tools(body: dict[str, Any], conversation: Conversation) -> None:
    tools = body.get("tools")
    for at, given in enumerate(objects(tools, "tools") if tools is not None else []):
        conversation.add(encode(given))
        declared = camel_keys(given).get("functionDeclarations")
        rows = objects(declared, f"tools[{at}]") if declared is not None else []
        for number, row in enumerate(rows):
            function = camel_keys(row)
            path = f"tools[{at}].function_declarations[{number}].name"
            name = tool_name(function.get("name"), path)
            schema = function.get("parametersJsonSchema") or function.get("parameters") or {}
            conversation.tools.append(Tool(name, schema))
    config = camel_keys(
        camel_keys(typed(body, "toolConfig", dict) or {}).get("functionCallingConfig") or {}
    )
    mode, allowed = (
        str(config.get("mode") or "AUTO").upper(),
        texts(config.get("allowedFunctionNames")),
    )
    if allowed and mode not in ("ANY", "VALIDATED"):
        raise invalid(
            "Function calling config is set without ANY mode; allowed_function_names may only be set when "
            "function calling mode is ANY.",
            "tool_config.function_calling_config",
        )
    unknown = [name for name in allowed if name not in [tool.name for tool in conversation.tools]]
    if unknown:
        said = f"allowed_function_names has names that are not declared: {unknown[0]}"
        raise invalid(said, "tool_config.function_calling_config")
    conversation.choice = {"ANY": "any", "NONE": "none"}.get(mode, "auto")
    if allowed:
        conversation.choice, conversation.named = "named", allowed[0]


def _read_system(body: dict[str, Any], conversation: Conversation) -> None:
    system = body.get("systemInstruction")
    if isinstance(system, str):
        raise invalid(
            "Invalid value at 'system_instruction' (type.googleapis.com/Content)", "system"
        )
    if not isinstance(system, dict):
        return
    parts = system.get("parts")
    for part in objects([parts] if isinstance(parts, dict) else parts, "system_instruction.parts"):
        conversation.system += str(part.get("text", ""))
    content = encode(system)
    conversation.segments.append(Segment(content, text_tokens(content)))
