"""Writer of Chat Completions bodies: a generation request for a worker that speaks HTTP. Pure.

Standard parameters have their standard names. Parameters of some servers only (`top_k`, grammars,
adapters) keep the client's names, as in requests that are relayed: a client that uses them knows
its servers.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from smg_node.core.errors import SmgError, unsupported
from smg_node.core.generation.request import (
    ChatPrompt,
    Constraint,
    GenerateRequest,
    MediaPart,
    Part,
    Sampling,
    TextPart,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    Turn,
    with_loaded_tools,
)
from smg_node.dialects.openai.provider.argument_text import object_text

SCHEMA_NAME: Final = "answer"
_BLANK_LINE: Final = "\n\n"
_NO_PARAMETERS: Final = {"type": "object", "properties": {}}
_OWNED: Final = frozenset({"role", "content", "tool_calls", "tool_call_id", "reasoning_content"})
_EFFORTS: Final = ("low", "medium", "high")
"""Those that all servers with levels of effort know; others are variables of templates only."""
_PLAIN: Final = (
    "max_tokens",
    "temperature",
    "top_p",
    "seed",
    "top_k",
    "min_p",
    "repetition_penalty",
)
"""Said where they are not None, under one name everywhere."""
_RARE: Final[Mapping[str, Any]] = {
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "min_tokens": 0,
    "ignore_eos": False,
    "skip_special_tokens": True,
    "spaces_between_special_tokens": True,
}
"""Said where they are not what they always are."""
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


def chat_fields(request: GenerateRequest) -> dict[str, Any]:
    """Return the body of a request, to be streamed; INVALID_REQUEST with the path of what no such
    body can carry.
    """
    prompt = _prompt(request)
    fields: dict[str, Any] = {
        "model": request.model,
        "messages": messages_of(prompt),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if prompt.tools:
        fields["tools"] = [_tool(tool) for tool in prompt.tools]
        fields["tool_choice"] = _choice(prompt.choice)
        if not prompt.choice.parallel:
            fields["parallel_tool_calls"] = False
    fields.update(_drawn(request.sampling))
    fields.update(_variables(prompt))
    return fields


def call_ids(prompt: ChatPrompt) -> frozenset[str]:
    """Return the ids of all tool calls in a prompt."""
    return frozenset(call.call_id for turn in prompt.turns for call in turn.calls)


def _prompt(request: GenerateRequest) -> ChatPrompt:
    sampling = request.sampling
    if sampling.n != 1:
        raise _not_here("only one answer at a time", sampling.path("n"))
    if sampling.prompt_logprobs is not None:
        raise _not_here("no log probabilities of prompts", sampling.path("prompt_logprobs"))
    if request.truncate_prompt_tokens is not None:
        raise _not_here("prompts are not cut by tokens", "truncate_prompt_tokens")
    [prompt] = request.prompts
    assert isinstance(prompt, ChatPrompt), "only turns are told to others as turns"
    return with_loaded_tools(prompt)


def _not_here(what: str, where: str) -> SmgError:
    return unsupported(f"the workers of this model speak HTTP: {what}", where)


# ── Messages ─────────────────────────────────────────────────────────────────


def messages_of(prompt: ChatPrompt) -> list[dict[str, Any]]:
    """Return turns as messages; INVALID_REQUEST for media that no message carries.

    Developer messages are `system`, which every template knows, and those at the beginning are
    merged into one message: many templates take no second one.
    """
    messages: list[dict[str, Any]] = []
    for turn in prompt.turns:
        message = _message(turn)
        first = messages[0] if len(messages) == 1 else None
        if first is not None and first["role"] == "system" == message["role"]:
            merged = _merged(first["content"], message["content"])
            messages[0] = {**message, **first, "content": merged}
        else:
            messages.append(message)
    return messages


def _message(turn: Turn) -> dict[str, Any]:
    role = "system" if turn.role == "developer" else turn.role
    message: dict[str, Any] = {"role": role, "content": _content(turn)}
    if turn.name is not None:
        message["name"] = turn.name
    if turn.reasoning is not None:
        message["reasoning_content"] = turn.reasoning
    if turn.calls:
        message["tool_calls"] = [_call(call) for call in turn.calls]
    if turn.answers_call is not None:
        message["tool_call_id"] = turn.answers_call
    for key, value in turn.extra.items():
        if value is not None and key not in _OWNED:
            message.setdefault(key, value)
    return message


def _content(turn: Turn) -> str | list[dict[str, Any]] | None:
    if turn.content is None or isinstance(turn.content, str):
        return turn.content
    return [_part(part) for part in turn.content]


def _merged(one: Any, other: Any) -> Any:
    if isinstance(one, list) or isinstance(other, list):
        return [*_as_parts(one), *_as_parts(other)]
    return _BLANK_LINE.join(text for text in (one, other) if text)


def _as_parts(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if not part.source:
        raise _not_here(f"this {part.kind} input has nothing they could be sent", part.where)
    match part.kind:
        case "image" | "video":
            kind = f"{part.kind}_url"
            address = {"url": part.source}
            if part.detail in ("low", "high"):
                address["detail"] = part.detail
            return {"type": kind, kind: address}
        case "audio":
            return _audio(part)
        case "file":
            if not part.source.startswith("data:"):
                raise _not_here("they take files only as data", part.where)
            return {"type": "file", "file": {"file_data": part.source}}


def _audio(part: MediaPart) -> dict[str, Any]:
    head, _, encoded = part.source.partition(";base64,")
    if not head.startswith("data:audio/") or not encoded:
        return {"type": "audio_url", "audio_url": {"url": part.source}}
    form = head.removeprefix("data:audio/")
    return {"type": "input_audio", "input_audio": {"data": encoded, "format": form}}


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": object_text(call.arguments)}
    return {"id": call.call_id, "type": "function", "function": function}


def _tool(tool: Tool) -> dict[str, Any]:
    parameters = _NO_PARAMETERS if tool.parameters is None else tool.parameters
    function: dict[str, Any] = {"name": tool.name, "parameters": parameters}
    if tool.description is not None:
        function["description"] = tool.description
    if tool.strict:
        function["strict"] = True
    return {"type": "function", "function": function}


def _choice(choice: ToolChoice) -> Any:
    """Return a tool choice as it is sent; only few servers know lists of allowed tools."""
    named = {"type": "function", "function": {"name": choice.name}}
    if choice.mode == "named":
        return named
    if choice.allowed is None or choice.mode == "none":
        return choice.mode
    tools = [{"type": "function", "function": {"name": name}} for name in choice.allowed]
    allowed = {"mode": choice.mode, "tools": tools}
    return {"type": "allowed_tools", "allowed_tools": allowed}


# ── How it is drawn ──────────────────────────────────────────────────────────


def _drawn(sampling: Sampling) -> Iterator[tuple[str, Any]]:
    for name in _PLAIN:
        value = getattr(sampling, name)
        if value is not None:
            yield name, value
    for name, usual in _RARE.items():
        value = getattr(sampling, name)
        if value != usual:
            yield name, value
    if sampling.stop:
        yield "stop", list(sampling.stop)
    if sampling.stop_token_ids:
        yield "stop_token_ids", list(sampling.stop_token_ids)
    if sampling.keep_stop:
        yield sampling.path("keep_stop"), True
    if sampling.logit_bias:
        yield "logit_bias", {str(one): bias for one, bias in sampling.logit_bias.items()}
    if sampling.logprobs is not None:
        yield "logprobs", True
        yield "top_logprobs", sampling.logprobs
    if sampling.adapter is not None:
        yield sampling.path("adapter"), sampling.adapter
    if sampling.constraint is not None:
        yield _held_to(sampling.constraint)


def _held_to(constraint: Constraint) -> tuple[str, Any]:
    """Return the field that carries the output constraint."""
    value = constraint.value
    match constraint.kind:
        case "json_object":
            return "response_format", {"type": "json_object"}
        case "json_schema":
            named = {"name": SCHEMA_NAME, "schema": _decode(value), "strict": constraint.strict}
            return "response_format", {"type": "json_schema", "json_schema": named}
        case "structural_tag":
            return "response_format", {**_decode(value), "type": "structural_tag"}
        case "regex" | "ebnf" | "choice":
            said: Any = _decode(value) if constraint.kind == "choice" else value
            name, *inside = constraint.where.split(".")
            for one in reversed(inside):
                said = {one: said}
            return name, said


def _thinking(thinking: Thinking) -> dict[str, Any]:
    """Return the thinking options as variables: the template of a remote server is not known, so
    all usual names are set.

    Most templates have a switch and no levels, so it is off at minimal effort. A template ignores
    variables it does not know.
    """
    variables: dict[str, Any] = {}
    effort = thinking.effort if thinking.number is None else thinking.number
    if effort is not None:
        variables["reasoning_effort"] = effort
    on = thinking.on
    if on is None and effort in ("none", "minimal"):
        on = False
    if on is not None:
        variables["enable_thinking"] = on
        variables["thinking"] = on
    if thinking.budget is not None:
        variables["thinking_budget"] = thinking.budget
    return variables


def _variables(prompt: ChatPrompt) -> Iterator[tuple[str, Any]]:
    variables = {**_thinking(prompt.thinking), **prompt.kwargs}
    if variables:
        yield "chat_template_kwargs", variables
        effort = variables.get("reasoning_effort")
        if effort in _EFFORTS:
            yield "reasoning_effort", effort
    if prompt.template is not None:
        yield "chat_template", prompt.template
    if prompt.documents is not None:
        yield "documents", list(prompt.documents)
    if not prompt.add_generation_prompt:
        yield "add_generation_prompt", False
    if prompt.continue_final_message:
        yield "continue_final_message", True
