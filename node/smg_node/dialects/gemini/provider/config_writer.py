"""Writer of `generationConfig`: how the answer is drawn, its form, how much is thought before. Pure.

What only engines know and shapes the answer is refused; what only tunes it is named among the ignored.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from smg_node.core.errors import unsupported
from smg_node.core.generation.request import ChatPrompt, Constraint, Sampling
from smg_node.dialects.gemini.provider.model_traits import ModelTraits
from smg_node.dialects.gemini.provider.thinking_writer import thinking_config

_PLAIN: Final[Mapping[str, str]] = {
    "temperature": "temperature",
    "top_p": "topP",
    "max_tokens": "maxOutputTokens",
}
_PENALTIES: Final[Mapping[str, str]] = {
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}
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
"""What it does not know, and the value that says nothing."""
_SEED_BITS: Final = 0x7FFF_FFFF
"""Seeds are 32-bit integers with a sign here; one seed stays one seed."""
_JSON: Final = "application/json"
_ENUM: Final = "text/x.enum"
_decode: Final = msgspec.json.Decoder().decode


def generation_config(
    prompt: ChatPrompt, sampling: Sampling, traits: ModelTraits, ignored: list[str]
) -> dict[str, Any]:
    """Return `generationConfig`; what cannot be said is put into `ignored`.

    INVALID_REQUEST with the path of what would change the answer's meaning.
    """
    if sampling.n != 1:
        raise not_here("only one answer at a time", sampling.path("n"))
    for name, why in _REFUSED.items():
        if getattr(sampling, name) not in (None, ()):
            raise not_here(why, sampling.path(name))
    config = dict(_drawn(sampling))
    for name, usual in _IGNORED.items():
        if getattr(sampling, name) != usual:
            ignored.append(sampling.path(name))
    if sampling.logit_bias:
        ignored.append(sampling.path("logit_bias"))
    if sampling.constraint is not None:
        config |= _form(sampling.constraint, prompt, traits, ignored)
    thinking = prompt.thinking
    told = thinking_config(thinking, traits)
    if told is not None:
        config["thinkingConfig"] = told
    if thinking.number is not None or (thinking.said and traits.thinking == "none"):
        ignored.append(thinking.where)
    return config


def not_here(why: str, where: str | None) -> Exception:
    """Return the error for what no body of this API can carry."""
    return unsupported(f"the model is at a vendor whose API cannot take this: {why}", where)


def _drawn(sampling: Sampling) -> Iterator[tuple[str, Any]]:
    for name, theirs in _PLAIN.items():
        value = getattr(sampling, name)
        if value is not None:
            yield theirs, value
    for name, theirs in _PENALTIES.items():
        value = getattr(sampling, name)
        if value:
            yield theirs, value
    if sampling.top_k is not None and sampling.top_k > 0:
        yield "topK", sampling.top_k
    if sampling.stop:
        yield "stopSequences", list(sampling.stop)
    if sampling.seed is not None:
        yield "seed", sampling.seed & _SEED_BITS
    if sampling.logprobs is not None:
        yield "responseLogprobs", True
        if sampling.logprobs:
            yield "logprobs", sampling.logprobs


def _form(
    constraint: Constraint, prompt: ChatPrompt, traits: ModelTraits, ignored: list[str]
) -> dict[str, Any]:
    """Return the fields of the answer's form."""
    if prompt.tools and prompt.choice.mode != "none" and not traits.json_and_tools:
        if constraint.strict:
            why = "this model takes no form of the answer beside tools"
            raise not_here(why, constraint.where)
        ignored.append(constraint.where)
        return {}
    match constraint.kind:
        case "json_object":
            return {"responseMimeType": _JSON}
        case "json_schema":
            schema = _decode(constraint.value)
            return {"responseMimeType": _JSON, "responseJsonSchema": schema}
        case "choice":
            one_of = {"type": "STRING", "enum": _decode(constraint.value)}
            return {"responseMimeType": _ENUM, "responseSchema": one_of}
        case _:
            raise not_here("it takes no grammars; use a JSON schema", constraint.where)
