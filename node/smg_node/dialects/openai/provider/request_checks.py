"""Request checks: what of a generation request no vendor with OpenAI's APIs can be asked for. Pure.

What shapes the answer is refused with the client's path; what only tunes it is named among the ignored.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from smg_node.core.errors import SmgError, invalid, unsupported
from smg_node.core.generation.request import (
    ChatPrompt,
    GenerateRequest,
    Sampling,
    with_loaded_tools,
)

_REFUSED: Final[Mapping[str, str]] = {
    "prompt_logprobs": "it gives no log probabilities of prompts",
    "stop_token_ids": "it knows no ids of tokens; stop at texts",
    "adapter": "it has no adapters",
}
_IGNORED: Final[Mapping[str, Any]] = {
    "min_tokens": 0,
    "min_p": None,
    "repetition_penalty": None,
    "ignore_eos": False,
    "keep_stop": False,
    "skip_special_tokens": True,
    "spaces_between_special_tokens": True,
}
"""What only engines know, and the value that says nothing."""


def not_here(why: str, where: str | None) -> SmgError:
    """Return the error for what no body can carry."""
    return unsupported(f"the model is at a vendor whose API cannot take this: {why}", where)


def checked_prompt(request: GenerateRequest) -> ChatPrompt:
    """Return the chat of a request, with the tools its model knows; INVALID_REQUEST for what cannot be asked for."""
    sampling = request.sampling
    for name, why in _REFUSED.items():
        if getattr(sampling, name) not in (None, ()):
            raise not_here(why, sampling.path(name))
    if request.truncate_prompt_tokens is not None:
        raise not_here("prompts are not cut by tokens", "truncate_prompt_tokens")
    prompt = request.prompts[0]
    if len(request.prompts) != 1 or not isinstance(prompt, ChatPrompt):
        raise not_here("it takes conversations only", "prompt")
    if prompt.template is not None:
        raise not_here("it renders prompts by itself", "chat_template")
    if prompt.documents:
        raise not_here("documents must stand in the messages", "documents")
    if prompt.continue_final_message:
        raise not_here("it does not go on from an assistant's message", "continue_final_message")
    if not prompt.turns:
        raise invalid("the vendor of this model is sent no empty conversation", prompt.where)
    return with_loaded_tools(prompt)


def ignored_in(request: GenerateRequest, prompt: ChatPrompt) -> Iterator[str]:
    """Yield the paths of what is not said to a vendor."""
    sampling: Sampling = request.sampling
    for name, usual in _IGNORED.items():
        if getattr(sampling, name) != usual:
            yield sampling.path(name)
    if prompt.kwargs:
        yield "chat_template_kwargs"
    if request.prompt_ids:
        yield "return_token_ids"
    if prompt.thinking.number is not None:
        yield prompt.thinking.where
