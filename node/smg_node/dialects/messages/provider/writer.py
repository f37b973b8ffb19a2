"""Writer of Messages bodies: a generation request for a vendor that speaks this API. Pure.

What the API does not know is left out and named where the answer stays what was asked for, and is an error where it
would be another one. What a model was found to refuse is left out likewise.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from smg_node.core.errors import SmgError, invalid, unsupported
from smg_node.core.generation.request import (
    ChatPrompt,
    Constraint,
    GenerateRequest,
    Sampling,
    Tool,
    ToolChoice,
    with_loaded_tools,
)
from smg_node.dialects.messages.provider.conversation import Conversation, conversation_of
from smg_node.dialects.messages.provider.thinking_fields import ThinkingFields, thinking_fields
from smg_node.dialects.provider_dialect import WriterOptions, Written, ignored_details

SYSTEMS_FIRST: Final = "systems_first"
"""Quirk: a system message may not stand between others."""
NO_DEFERRED_TOOLS: Final = "no_deferred_tools"
"""Quirk: the model does not take `defer_loading`."""
ISSUER: Final = "anthropic"
_TEMPERATURE_MAX: Final = 1.0
_UNSAID: Final = 1.0
"""Temperature and `top_p` of who says none."""
_MODES: Final = {"auto": "auto", "required": "any", "named": "tool", "none": "none"}
_OPEN: Final = {"type": "object", "properties": {}}
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


def messages_fields(request: GenerateRequest, options: WriterOptions) -> Written:
    """Return the body of a request, to be streamed; see `ProviderDialect.write`."""
    prompt, sampling = _prompt(request), request.sampling
    ignored = [sampling.path(name) for name in _unheard(sampling)] + ignored_details(prompt)
    stays = prompt.systems_stay and SYSTEMS_FIRST not in options.quirks
    defers = _defers(prompt, options)
    if not defers:
        prompt = with_loaded_tools(prompt)
    said = conversation_of(
        prompt, options.issuer, systems_stay=stays, references=_referable(prompt) if defers else ()
    )
    if not said.messages:
        raise invalid("the vendor of this model is sent no empty conversation", prompt.where)
    _check_last(prompt, said)
    fields: dict[str, Any] = {"model": options.model, "max_tokens": 0, "messages": said.messages}
    if said.system:
        fields["system"] = said.system
    fields.update(_tools(prompt, said))
    thinking = thinking_fields(prompt, sampling.max_tokens, options, said, fields)
    fields["max_tokens"] = thinking.max_tokens
    ignored += thinking.ignored
    fields.update(_sampled(sampling, thinking, ignored))
    fields.update(_output_config(sampling, thinking, ignored))
    if prompt.kwargs:
        ignored.append("chat_template_kwargs")
    fields["stream"] = True
    _leave_out(fields, options, sampling, ignored)
    return Written(fields, tuple(dict.fromkeys(ignored)))


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
    return prompt


def _not_here(why: str, where: str) -> SmgError:
    return unsupported(f"the vendor of this model cannot do this: {why}", where)


def _check_last(prompt: ChatPrompt, said: Conversation) -> None:
    if said.messages[-1]["role"] == "assistant" and not prompt.continue_final_message:
        raise _not_here(
            "an assistant's message at the end is what the answer goes on from; end with a user's",
            prompt.where,
        )


# ── Tools ────────────────────────────────────────────────────────────────────


def _tools(prompt: ChatPrompt, said: Conversation) -> Iterator[tuple[str, Any]]:
    """Yield the tools and the choice among them; a history with calls needs tools, even if none is offered now."""
    choice = prompt.choice
    allowed = _allowed(prompt)
    if allowed:
        known = set() if not any(tool.deferred for tool in allowed) else _known(prompt)
        yield (
            "tools",
            [_tool(tool, defers=tool.deferred and tool.name not in known) for tool in allowed],
        )
        yield "tool_choice", _choice(choice)
        return
    called = dict.fromkeys(
        block["name"]
        for message in said.messages
        for block in message["content"]
        if block["type"] == "tool_use"
    )
    if called:
        yield "tools", [{"name": name, "input_schema": _OPEN} for name in called]
        yield "tool_choice", {"type": "none"}


def _allowed(prompt: ChatPrompt) -> tuple[Tool, ...]:
    choice = prompt.choice
    if choice.allowed is None or choice.mode == "none":
        return prompt.tools
    return tuple(tool for tool in prompt.tools if tool.name in choice.allowed)


def _defers(prompt: ChatPrompt, options: WriterOptions) -> bool:
    """Whether the vendor is told of deferred tools, of which one at least must not be: only Anthropic knows the word."""
    if options.issuer != ISSUER or NO_DEFERRED_TOOLS in options.quirks:
        return False
    return len({tool.deferred for tool in _allowed(prompt)}) > 1


def _referable(prompt: ChatPrompt) -> frozenset[str]:
    return frozenset(tool.name for tool in _allowed(prompt) if tool.deferred)


def _known(prompt: ChatPrompt) -> set[str]:
    """Return the names of tools that must be called, or were, though no result refers to them."""
    called = {call.name for turn in prompt.turns for call in turn.calls}
    if prompt.choice.mode == "named":
        called.add(prompt.choice.name)
    return called - {name for turn in prompt.turns for name in turn.references}


def _tool(tool: Tool, *, defers: bool) -> dict[str, Any]:
    parameters = _OPEN if tool.parameters is None else tool.parameters
    if "type" not in parameters:
        parameters = {"type": "object", **parameters}
    said: dict[str, Any] = {"name": tool.name, "input_schema": parameters}
    if tool.description:
        said["description"] = tool.description
    if tool.strict:
        said["strict"] = True
    if defers:
        said["defer_loading"] = True
    return said


def _choice(choice: ToolChoice) -> dict[str, Any]:
    said: dict[str, Any] = {"type": _MODES[choice.mode]}
    if choice.mode == "named":
        said["name"] = choice.name
    if not choice.parallel and choice.mode != "none":
        said["disable_parallel_tool_use"] = True
    return said


# ── How it is drawn ──────────────────────────────────────────────────────────


def _unheard(sampling: Sampling) -> Iterator[str]:
    for name, usual in _UNHEARD.items():
        if getattr(sampling, name) != usual:
            yield name


def _sampled(
    sampling: Sampling, thinking: ThinkingFields, ignored: list[str]
) -> Iterator[tuple[str, Any]]:
    """Yield what says how tokens are drawn: temperature or `top_p`, not both, and nothing of it for who thinks."""
    if sampling.stop:
        if any(stop.isspace() for stop in sampling.stop):
            raise _not_here("it ends no answer at white space", sampling.path("stop"))
        yield "stop_sequences", list(sampling.stop)
    wishes = [
        (name, value)
        for name in ("temperature", "top_p", "top_k")
        if (value := getattr(sampling, name)) is not None
        and not (name != "top_k" and value == _UNSAID)
        and not (name == "top_k" and value <= 0)
    ]
    drawn = dict(wishes)
    for name, value in wishes:
        if thinking.on or (name == "top_p" and "temperature" in drawn):
            ignored.append(sampling.path(name))
        elif name == "temperature" and value > _TEMPERATURE_MAX:
            ignored.append(sampling.path(name))
            yield name, _TEMPERATURE_MAX
        else:
            yield name, value


def _output_config(
    sampling: Sampling, thinking: ThinkingFields, ignored: list[str]
) -> Iterator[tuple[str, Any]]:
    """Yield effort, thinking and the form of the answer."""
    if thinking.thinking is not None:
        yield "thinking", thinking.thinking
    config: dict[str, Any] = {}
    if thinking.effort is not None:
        config["effort"] = thinking.effort
    constraint = sampling.constraint
    if constraint is not None:
        schema = _schema(constraint)
        if schema is None:
            ignored.append(constraint.where)
        else:
            config["format"] = {"type": "json_schema", "schema": schema}
    if config:
        yield "output_config", config


def _schema(constraint: Constraint) -> Any:
    """Return the schema of a constraint; None for any object of JSON where that is only a wish."""
    if constraint.kind == "json_object" and not constraint.strict:
        return None
    if constraint.kind != "json_schema":
        raise _not_here("it holds answers to a JSON Schema only", constraint.where)
    return _closed(_decode(constraint.value))


def _closed(schema: Any) -> Any:
    """Return a schema whose objects have no other members than they name, unless it says so itself: open ones are
    not taken, and what matches a closed one matches the open one.
    """
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {
        name: part if name in ("enum", "const", "default", "examples") else _closed(part)
        for name, part in schema.items()
    }
    if schema.get("type") == "object" and "properties" in schema:
        closed.setdefault("additionalProperties", False)
    return closed


# ── What a model refuses ─────────────────────────────────────────────────────

_WISHES: Final = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "thinking": "",
    "output_config.effort": "",
}
"""Fields that may be left out, and the names of their wishes."""


def _leave_out(
    fields: dict[str, Any], options: WriterOptions, sampling: Sampling, ignored: list[str]
) -> None:
    for name in sorted(options.lacks):
        holder, _, last = name.rpartition(".")
        inside = fields.get(holder) if holder else fields
        if not isinstance(inside, dict) or last not in inside:
            continue
        if name not in _WISHES:
            raise _not_here(f"the model does not take {name}", name)
        del inside[last]
        ignored.append(sampling.path(_WISHES[name]) if _WISHES[name] else name)
        if holder and not inside:
            del fields[holder]
