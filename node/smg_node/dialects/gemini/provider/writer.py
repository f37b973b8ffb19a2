"""Writer of generateContent bodies: a generation request for a vendor's Gemini model. Pure.

Model and streaming stand in the URL, not in the body. What this API cannot say is refused where it would change the
answer's meaning, and named among the ignored otherwise.
"""

from typing import Any, Final

from smg_node.core.generation.request import ChatPrompt, GenerateRequest, with_loaded_tools
from smg_node.dialects.gemini.provider.config_writer import generation_config, not_here
from smg_node.dialects.gemini.provider.contents_writer import contents_of
from smg_node.dialects.gemini.provider.model_traits import traits_of
from smg_node.dialects.gemini.provider.tools_writer import tools_of
from smg_node.dialects.provider_dialect import WriterOptions, Written, ignored_details

_CONFIG: Final = "generationConfig"
_NEEDED: Final = frozenset(
    {"contents", "systemInstruction", "tools", "toolConfig", "responseJsonSchema", "responseSchema",
     "responseMimeType", "stopSequences"}
)  # fmt: skip
"""Fields without which the answer would be another one."""


def write(request: GenerateRequest, options: WriterOptions) -> Written:
    """Return the body; INVALID_REQUEST with the path of what it cannot carry and would change meaning or safety."""
    prompt = _prompt(request)
    ignored = ignored_details(prompt)
    traits = traits_of(options.model, options.quirks)
    fields = contents_of(prompt, traits, options.issuer, ignored)
    fields |= tools_of(prompt)
    if prompt.tools and not prompt.choice.parallel:
        ignored.append("parallel_tool_calls")
    if prompt.kwargs:
        ignored.append("chat_template_kwargs")
    config = generation_config(prompt, request.sampling, traits, ignored)
    for name in sorted(options.lacks & (fields.keys() | config.keys())):
        _leave_out(name, fields if name in fields else config, ignored)
    if config:
        fields[_CONFIG] = config
    return Written(fields, tuple(dict.fromkeys(ignored)))


def _prompt(request: GenerateRequest) -> ChatPrompt:
    if request.truncate_prompt_tokens is not None:
        raise not_here("prompts are not cut by tokens", "truncate_prompt_tokens")
    [prompt] = request.prompts
    assert isinstance(prompt, ChatPrompt), "only turns are told to others as turns"
    if prompt.template is not None:
        raise not_here("its model has no chat template", "chat_template")
    if prompt.documents is not None:
        raise not_here("it has no place for documents; put them into a message", "documents")
    return with_loaded_tools(prompt)


def _leave_out(name: str, fields: dict[str, Any], ignored: list[str]) -> None:
    """Leave out a field that this model refuses."""
    if name in _NEEDED:
        raise not_here(f"this model takes no {name}", None)
    del fields[name]
    ignored.append(name)
