"""Writer of Chat Completions bodies for vendors: standard fields only, under the names that the vendor has for them. Pure.

What the API does not know is left out and named where the answer stays what was asked for, and is an error where it
would be another one. What a model was found to refuse is left out likewise.
"""

from collections.abc import Collection, Iterator
from typing import Any, Final

from smg_node.core.generation.request import (
    ChatPrompt,
    GenerateRequest,
    Sampling,
    Tool,
    ToolChoice,
)
from smg_node.dialects.chat.provider.messages_writer import vendor_messages
from smg_node.dialects.openai.provider.effort import effort_of, thinks
from smg_node.dialects.openai.provider.output_form import is_strict, output_form
from smg_node.dialects.openai.provider.quirks import (
    MAX_TOKENS_NAME,
    NO_STREAM_OPTIONS,
    RANDOM_SEED,
    REQUIRED_IS_ANY,
)
from smg_node.dialects.openai.provider.request_checks import checked_prompt, ignored_in, not_here
from smg_node.dialects.provider_dialect import WriterOptions, Written

_LENGTHS: Final = ("max_completion_tokens", "max_tokens")
_NO_PARAMETERS: Final = {"type": "object", "properties": {}}
_WISHES: Final = {
    "max_completion_tokens": "max_tokens",
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "seed": "seed",
    "random_seed": "seed",
    "logit_bias": "logit_bias",
    "reasoning_effort": "",
    "parallel_tool_calls": "",
    "stream_options": "",
}
"""Fields that may be left out, and the names of their wishes."""


def chat_body(request: GenerateRequest, options: WriterOptions) -> Written:
    """Return the body of a request, to be streamed; see `ProviderDialect.write`."""
    prompt, sampling, quirks = checked_prompt(request), request.sampling, options.quirks
    if sampling.n != 1:
        raise not_here("only one answer is read at a time", sampling.path("n"))
    ignored = list(ignored_in(request, prompt))
    if sampling.top_k is not None and sampling.top_k > 0:
        ignored.append(sampling.path("top_k"))
    fields: dict[str, Any] = {
        "model": options.model,
        "messages": vendor_messages(prompt, options.issuer, quirks),
        "stream": True,
    }
    if NO_STREAM_OPTIONS not in quirks:
        fields["stream_options"] = {"include_usage": True}
    fields.update(_tools(prompt, quirks, ignored))
    fields.update(_drawn(sampling, options))
    if sampling.constraint is not None:
        fields["response_format"] = _form(output_form(sampling.constraint, ignored))
    fields.update(_thinking(prompt, options, ignored))
    _leave_out(fields, options, sampling, ignored)
    return Written(fields, tuple(dict.fromkeys(ignored)))


# ── Tools ────────────────────────────────────────────────────────────────────


def _tools(
    prompt: ChatPrompt, quirks: Collection[str], ignored: list[str]
) -> Iterator[tuple[str, Any]]:
    """Yield those tools that may be called, and the choice among them."""
    choice = prompt.choice
    tools = prompt.tools
    if choice.allowed is not None and choice.mode != "none":
        tools = tuple(tool for tool in tools if tool.name in choice.allowed)
    if not tools:
        return
    yield "tools", [_tool(tool, ignored) for tool in tools]
    yield "tool_choice", _choice(choice, quirks)
    if not choice.parallel and choice.mode != "none":
        yield "parallel_tool_calls", False


def _tool(tool: Tool, ignored: list[str]) -> dict[str, Any]:
    parameters = _NO_PARAMETERS if tool.parameters is None else tool.parameters
    function: dict[str, Any] = {"name": tool.name, "parameters": parameters}
    if tool.description:
        function["description"] = tool.description
    if tool.strict:
        if is_strict(parameters):
            function["strict"] = True
        else:
            ignored.append(f"{tool.where}.strict")
    return {"type": "function", "function": function}


def _choice(choice: ToolChoice, quirks: Collection[str]) -> Any:
    if choice.mode == "named":
        return {"type": "function", "function": {"name": choice.name}}
    return "any" if choice.mode == "required" and REQUIRED_IS_ANY in quirks else choice.mode


# ── How it is drawn ──────────────────────────────────────────────────────────


def _drawn(sampling: Sampling, options: WriterOptions) -> Iterator[tuple[str, Any]]:
    if sampling.max_tokens is not None:
        yield _length(options), sampling.max_tokens
    for name in ("temperature", "top_p"):
        value = getattr(sampling, name)
        if value is not None:
            yield name, value
    for name in ("frequency_penalty", "presence_penalty"):
        value = getattr(sampling, name)
        if value:
            yield name, value
    if sampling.seed is not None:
        yield "random_seed" if RANDOM_SEED in options.quirks else "seed", sampling.seed
    if sampling.stop:
        yield "stop", list(sampling.stop)
    if sampling.logit_bias:
        yield "logit_bias", {str(one): bias for one, bias in sampling.logit_bias.items()}
    if sampling.logprobs is not None:
        yield "logprobs", True
        if sampling.logprobs:
            yield "top_logprobs", sampling.logprobs


def _length(options: WriterOptions) -> str:
    """Return how the vendor calls the answer's length: a name that the model refused is the other one."""
    names = _LENGTHS[::-1] if MAX_TOKENS_NAME in options.quirks else _LENGTHS
    return next((name for name in names if name not in options.lacks), names[0])


def _form(form: dict[str, Any]) -> dict[str, Any]:
    kind = form.pop("type")
    return {"type": kind, kind: form} if form else {"type": kind}


def _thinking(
    prompt: ChatPrompt, options: WriterOptions, ignored: list[str]
) -> Iterator[tuple[str, Any]]:
    effort = effort_of(prompt.thinking, options.quirks)
    if effort is None:
        return
    if thinks(options.model, options.quirks):
        yield "reasoning_effort", effort
    elif effort != "none":
        ignored.append(prompt.thinking.where)


# ── What a model refuses ─────────────────────────────────────────────────────


def _leave_out(
    fields: dict[str, Any], options: WriterOptions, sampling: Sampling, ignored: list[str]
) -> None:
    for name in sorted(options.lacks):
        if name not in fields:
            continue
        if name not in _WISHES:
            raise not_here(f"the model does not take {name}", name)
        del fields[name]
        if name != "stream_options":
            ignored.append(sampling.path(_WISHES[name]) if _WISHES[name] else name)
