"""Writer of Responses bodies for vendors: a request whose history is here, and that leaves nothing there. Pure.

The vendor stores nothing, so it is asked for its thoughts in encrypted form, which go back with the next request. What the
API does not know is left out and named where the answer stays what was asked for, and is an error where it would be
another one. What a model was found to refuse is left out likewise.
"""

from collections.abc import Iterator
from typing import Any, Final

from smg_node.core.generation.request import (
    ChatPrompt,
    GenerateRequest,
    Sampling,
    Tool,
    ToolChoice,
)
from smg_node.dialects.openai.provider.effort import effort_of, shows_thoughts, thinks
from smg_node.dialects.openai.provider.output_form import is_strict, output_form
from smg_node.dialects.openai.provider.quirks import NO_ENCRYPTED_REASONING, NO_SUMMARIES
from smg_node.dialects.openai.provider.request_checks import checked_prompt, ignored_in, not_here
from smg_node.dialects.provider_dialect import WriterOptions, Written
from smg_node.dialects.responses.provider.input_writer import input_of

LENGTH_MIN: Final = 16
"""The vendor refuses to give a shorter answer."""
ENCRYPTED_THOUGHTS: Final = "reasoning.encrypted_content"
_LOGPROBS: Final = "message.output_text.logprobs"
_NO_PARAMETERS: Final = {"type": "object", "properties": {}}
_UNHEARD: Final[dict[str, Any]] = {
    "top_k": None,
    "seed": None,
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "logit_bias": {},
}
"""Fields that this API does not have, and what they usually are."""
_WISHES: Final = {
    "max_output_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_logprobs": "logprobs",
    "reasoning": "",
    "parallel_tool_calls": "",
    "include": None,
    "store": None,
}
"""Fields that may be left out, and the names of their wishes; None for what the client did not wish."""


def responses_body(request: GenerateRequest, options: WriterOptions) -> Written:
    """Return the body of a request, to be streamed; see `ProviderDialect.write`."""
    prompt, sampling = checked_prompt(request), request.sampling
    if sampling.n != 1:
        raise not_here("it gives only one answer at a time", sampling.path("n"))
    if sampling.stop:
        raise not_here("it does not stop at texts", sampling.path("stop"))
    ignored = list(ignored_in(request, prompt))
    ignored += [
        sampling.path(name)
        for name, usual in _UNHEARD.items()
        if getattr(sampling, name) != usual and not (name == "top_k" and sampling.top_k in (0, -1))
    ]
    if any(turn.name and turn.role not in ("tool", "function") for turn in prompt.turns):
        ignored.append(f"{prompt.where}.name")
    fields: dict[str, Any] = {
        "model": options.model,
        **input_of(prompt, options.issuer),
        "store": False,
        "stream": True,
    }
    fields.update(_tools(prompt, ignored))
    fields.update(_drawn(sampling, ignored))
    if sampling.constraint is not None:
        fields["text"] = {"format": output_form(sampling.constraint, ignored)}
    fields.update(_thinking(prompt, options, ignored))
    include = list(_include(sampling, options))
    if include:
        fields["include"] = include
    _leave_out(fields, options, sampling, ignored)
    return Written(fields, tuple(dict.fromkeys(ignored)))


# ── Tools ────────────────────────────────────────────────────────────────────


def _tools(prompt: ChatPrompt, ignored: list[str]) -> Iterator[tuple[str, Any]]:
    if not prompt.tools:
        return
    choice = prompt.choice
    yield "tools", [_tool(tool, ignored) for tool in prompt.tools]
    yield "tool_choice", _choice(choice)
    if not choice.parallel and choice.mode != "none":
        yield "parallel_tool_calls", False


def _tool(tool: Tool, ignored: list[str]) -> dict[str, Any]:
    parameters = _NO_PARAMETERS if tool.parameters is None else tool.parameters
    strict = tool.strict and is_strict(parameters)
    if tool.strict and not strict:
        ignored.append(f"{tool.where}.strict")
    # Without a word on it, this API is strict.
    told = {"type": "function", "name": tool.name, "parameters": parameters, "strict": strict}
    return {**told, "description": tool.description} if tool.description else told


def _choice(choice: ToolChoice) -> Any:
    if choice.mode == "named":
        return {"type": "function", "name": choice.name}
    if choice.allowed is None or choice.mode == "none":
        return choice.mode
    if not choice.allowed:
        return "none"
    tools = [{"type": "function", "name": name} for name in choice.allowed]
    return {"type": "allowed_tools", "mode": choice.mode, "tools": tools}


# ── How it is drawn ──────────────────────────────────────────────────────────


def _drawn(sampling: Sampling, ignored: list[str]) -> Iterator[tuple[str, Any]]:
    if sampling.max_tokens is not None:
        if sampling.max_tokens < LENGTH_MIN:
            ignored.append(sampling.path("max_tokens"))
        yield "max_output_tokens", max(sampling.max_tokens, LENGTH_MIN)
    for name in ("temperature", "top_p"):
        value = getattr(sampling, name)
        if value is not None:
            yield name, value
    if sampling.logprobs:
        yield "top_logprobs", sampling.logprobs


def _thinking(
    prompt: ChatPrompt, options: WriterOptions, ignored: list[str]
) -> Iterator[tuple[str, Any]]:
    """Yield how much is to be thought; thoughts are shown to who asked for them."""
    thinking = prompt.thinking
    effort, shown = effort_of(thinking, options.quirks), shows_thoughts(thinking)
    if not thinks(options.model, options.quirks):
        if shown or effort not in (None, "none"):
            ignored.append(thinking.where)
        return
    reasoning: dict[str, Any] = {} if effort is None else {"effort": effort}
    if shown and NO_SUMMARIES not in options.quirks:
        reasoning["summary"] = "auto"
    if reasoning:
        yield "reasoning", reasoning


def _include(sampling: Sampling, options: WriterOptions) -> Iterator[str]:
    if thinks(options.model, options.quirks) and NO_ENCRYPTED_REASONING not in options.quirks:
        yield ENCRYPTED_THOUGHTS
    if sampling.logprobs is not None:
        yield _LOGPROBS


# ── What a model refuses ─────────────────────────────────────────────────────


def _leave_out(
    fields: dict[str, Any], options: WriterOptions, sampling: Sampling, ignored: list[str]
) -> None:
    for name in sorted(options.lacks):
        if name not in fields:
            continue
        if name not in _WISHES:
            raise not_here(f"the model does not take {name}", name)
        if name == "include" and _LOGPROBS in fields[name]:
            ignored.append(sampling.path("logprobs"))
        del fields[name]
        wish = _WISHES[name]
        if wish is not None:
            ignored.append(sampling.path(wish) if wish else name)
