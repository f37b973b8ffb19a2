"""Writer of Converse bodies: a generation request for a model of Amazon Bedrock. Pure.

What the API does not know is left out and named where the answer stays what was asked for, and is an error where it
would be another one. What a model was found to refuse is left out likewise. Pictures and documents are base64, as they
go out.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from smg_node.core.errors import SmgError, unsupported
from smg_node.core.generation.request import (
    ChatPrompt,
    Constraint,
    GenerateRequest,
    Sampling,
    with_loaded_tools,
)
from smg_node.dialects.converse.conversation import conversation_of
from smg_node.dialects.converse.thinking_fields import ThinkingFields, thinking_fields
from smg_node.dialects.converse.tool_fields import offered_tools, tool_config
from smg_node.dialects.converse.vendor_answer import ANTHROPIC
from smg_node.dialects.provider_dialect import WriterOptions, Written, ignored_details

SYSTEMS_FIRST: Final = "systems_first"
"""Quirk: a system message may not stand between others."""
SCHEMA_BY_TOOL: Final = "schema_by_tool"
"""Quirk: an answer that follows a schema is got by a forced call."""
_TEXT_FORMAT: Final = "outputConfig.textFormat"
_TOOL_CHOICE: Final = "toolConfig.toolChoice"
_SCHEMA_NAME: Final = "answer"
_ANY_OBJECT: Final = {"type": "object"}
_TEMPERATURE_MAX: Final = 1.0
_UNSAID: Final = 1.0
"""Temperature and `top_p` of Claude where nobody says any; newer ones take no words about them."""
_TOP_K: Final[Mapping[str, tuple[str, ...]]] = {
    "amazon.nova": ("inferenceConfig", "topK"),
    "mistral.": ("top_k",),
    "cohere.": ("k",),
}
"""Where models have it among their own fields, by a part of their names; Claude has `top_k`."""
_UNHEARD: Final[Mapping[str, Any]] = {
    "min_p": None,
    "repetition_penalty": None,
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "seed": None,
    "min_tokens": 0,
    "ignore_eos": False,
    "keep_stop": False,
    "skip_special_tokens": True,
    "spaces_between_special_tokens": True,
    "stop_token_ids": (),
    "logit_bias": {},
}
"""Fields that the API does not have, and what they usually are. Ids of tokens are those of another vocabulary."""
_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode


def converse_fields(request: GenerateRequest, options: WriterOptions) -> Written:
    """Return the body of a request; see `ProviderDialect.write`."""
    prompt, sampling = _prompt(request), request.sampling
    claude = options.issuer == ANTHROPIC
    ignored = [sampling.path(name) for name in _unheard(sampling)] + ignored_details(prompt)
    schema = None if sampling.constraint is None else _schema(sampling.constraint)
    by_tool = schema is not None and _by_tool(schema, options)
    forces = not _lacks(options, _TOOL_CHOICE)
    tools = tool_config(prompt, schema if by_tool else None, forces=forces)
    stays = claude and prompt.systems_stay and SYSTEMS_FIRST not in options.quirks
    said = conversation_of(prompt, options.issuer, calls_as_text=tools is None, systems_stay=stays)
    fields: dict[str, Any] = {"messages": said.messages}
    if said.system:
        fields["system"] = said.system
    if tools is not None:
        fields["toolConfig"] = tools
    forced = tools is not None and "toolChoice" in tools
    thinking = thinking_fields(
        prompt, sampling.max_tokens, options, forced=forced, messages=said.messages
    )
    ignored += thinking.ignored
    fields["inferenceConfig"] = dict(_drawn(sampling, thinking, ignored, claude=claude))
    fields["additionalModelRequestFields"] = _own_fields(sampling, thinking, options, ignored)
    fields["outputConfig"] = dict(_output(thinking, None if by_tool else schema))
    if claude and sampling.stop:
        # Claude says which of them ended its answer, if it is asked.
        fields["additionalModelResponseFieldPaths"] = ["/stop_sequence"]
    if offered_tools(prompt) and not prompt.choice.parallel:
        ignored.append("parallel_tool_calls")
    if prompt.kwargs:
        ignored.append("chat_template_kwargs")
    _leave_out(fields, options, sampling, prompt, ignored)
    whole = {name: value for name, value in fields.items() if value}
    return Written(whole, tuple(dict.fromkeys(ignored)))


def _prompt(request: GenerateRequest) -> ChatPrompt:
    sampling = request.sampling
    if sampling.n != 1:
        raise _not_here("it gives only one answer at a time", sampling.path("n"))
    for name in ("logprobs", "prompt_logprobs"):
        if getattr(sampling, name) is not None:
            raise _not_here("it tells no log probabilities", sampling.path(name))
    if sampling.adapter is not None:
        raise _not_here("it has no adapters", sampling.path("adapter"))
    if request.truncate_prompt_tokens is not None:
        raise _not_here("prompts are not cut by tokens", "truncate_prompt_tokens")
    prompt = request.prompts[0]
    if len(request.prompts) != 1 or not isinstance(prompt, ChatPrompt):
        raise _not_here("it takes conversations only", "prompt")
    if prompt.template is not None:
        raise _not_here("it renders prompts by itself", "chat_template")
    if prompt.documents:
        raise _not_here("documents must stand in the messages", "documents")
    return with_loaded_tools(prompt)


def _not_here(why: str, where: str) -> SmgError:
    return unsupported(f"the model is at Amazon Bedrock: {why}", where)


# ── How it is drawn ──────────────────────────────────────────────────────────


def _unheard(sampling: Sampling) -> Iterator[str]:
    for name, usual in _UNHEARD.items():
        if getattr(sampling, name) != usual:
            yield name


def _drawn(
    sampling: Sampling, thinking: ThinkingFields, ignored: list[str], *, claude: bool
) -> Iterator[tuple[str, Any]]:
    """Yield the `inferenceConfig`. Claude takes a temperature or a `top_p`, and none of them while it thinks."""
    if thinking.max_tokens is not None:
        yield "maxTokens", max(1, thinking.max_tokens)
    if sampling.stop:
        if claude and any(stop.isspace() for stop in sampling.stop):
            raise _not_here("it ends no answer at white space", sampling.path("stop"))
        yield "stopSequences", list(sampling.stop)
    temperature, top_p = sampling.temperature, sampling.top_p
    if claude:
        temperature = None if temperature == _UNSAID else temperature
        top_p = None if top_p == _UNSAID else top_p
        if top_p is not None and (thinking.on or temperature is not None):
            ignored.append(sampling.path("top_p"))
            top_p = None
        if temperature is not None and thinking.on:
            ignored.append(sampling.path("temperature"))
            temperature = None
    if temperature is not None:
        if temperature > _TEMPERATURE_MAX:
            ignored.append(sampling.path("temperature"))
        yield "temperature", min(temperature, _TEMPERATURE_MAX)
    if top_p is not None:
        yield "topP", top_p


def _own_fields(
    sampling: Sampling, thinking: ThinkingFields, options: WriterOptions, ignored: list[str]
) -> dict[str, Any]:
    """Return the fields that only the model itself knows."""
    fields: dict[str, Any] = dict(thinking.own)
    top_k = sampling.top_k
    if top_k is None or top_k <= 0:
        return fields
    if options.issuer == ANTHROPIC:
        path: tuple[str, ...] = () if thinking.on else ("top_k",)
    else:
        path = next((path for name, path in _TOP_K.items() if name in options.model), ())
    if not path:
        ignored.append(sampling.path("top_k"))
        return fields
    said: Any = top_k
    for name in reversed(path):
        said = {name: said}
    return {**fields, **said}


# ── The form of the answer ───────────────────────────────────────────────────


def _schema(constraint: Constraint) -> Any:
    """Return the JSON Schema of a constraint."""
    if constraint.kind == "json_object":
        return _ANY_OBJECT
    if constraint.kind != "json_schema":
        raise _not_here("it holds answers to a JSON Schema only", constraint.where)
    return _decode(constraint.value)


def _by_tool(schema: Any, options: WriterOptions) -> bool:
    """Whether an answer is got by a forced call: no text format is any object at all."""
    if schema is _ANY_OBJECT:
        return True
    return SCHEMA_BY_TOOL in options.quirks or _lacks(options, _TEXT_FORMAT)


def _output(thinking: ThinkingFields, schema: Any) -> Iterator[tuple[str, Any]]:
    if thinking.effort is not None:
        yield "effort", thinking.effort
    if schema is not None:
        text = _encode(_closed(schema)).decode()
        structure = {"jsonSchema": {"schema": text, "name": _SCHEMA_NAME}}
        yield "textFormat", {"type": "json_schema", "structure": structure}


def _closed(schema: Any) -> Any:
    """Return a schema whose objects have no members but those that they name, unless it says so itself: open ones are
    not taken.
    """
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    values = ("enum", "const", "default", "examples")
    closed = {name: part if name in values else _closed(part) for name, part in schema.items()}
    if schema.get("type") == "object" and "properties" in schema:
        closed.setdefault("additionalProperties", False)
    return closed


# ── What a model refuses ─────────────────────────────────────────────────────

_WISHES: Final[Mapping[str, tuple[str, str]]] = {
    "temperature": ("inferenceConfig.temperature", "temperature"),
    "topP": ("inferenceConfig.topP", "top_p"),
    "maxTokens": ("inferenceConfig.maxTokens", "max_tokens"),
    "top_k": ("additionalModelRequestFields.top_k", "top_k"),
    "thinking": ("additionalModelRequestFields.thinking", ""),
    "reasoning_effort": ("additionalModelRequestFields.reasoning_effort", ""),
    "reasoning_config": ("additionalModelRequestFields.reasoning_config", ""),
    "effort": ("outputConfig.effort", ""),
}
"""Fields that may be left out, and the names of their wishes; "" is how much to think."""
_OTHER_NAMES: Final[Mapping[str, str]] = {"top_p": "topP", "max_tokens": "maxTokens"}


def _lacks(options: WriterOptions, field: str) -> bool:
    """Whether the model was found to refuse that field, or one of its values."""
    last = field.rpartition(".")[2]
    return any(name in (last, field) or name.startswith(f"{field}.") for name in options.lacks)


def _leave_out(
    fields: dict[str, Any],
    options: WriterOptions,
    sampling: Sampling,
    prompt: ChatPrompt,
    ignored: list[str],
) -> None:
    for lacking in sorted(options.lacks):
        last = lacking.rpartition(".")[2]
        path, wish = _WISHES.get(_OTHER_NAMES.get(last, last), ("", ""))
        holder, _, name = path.partition(".")
        if path and name in fields[holder]:
            del fields[holder][name]
            ignored.append(sampling.path(wish) if wish else prompt.thinking.where)
        elif last == "stopSequences" and sampling.stop:
            raise _not_here("this model takes no stop strings", sampling.path("stop"))
