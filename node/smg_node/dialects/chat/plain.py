"""The short way for what most bodies are: a model, messages of a role and a string, and a handful of numbers.

It understands a part of what `reader` does, and leaves everything else to it: other keys, odd values, and whatever
is wrong. A body costs 2 us here and 6 there. That both say the same is tested over bodies of all kinds.
"""

from types import MappingProxyType
from typing import Any, Final, NamedTuple

from smg_node.core.request import ChatPrompt, GenerateRequest, Sampling, Turn
from smg_node.dialects.chat.messages import plain_turn

_MODEL_MAX: Final = 256
_INT32_MAX: Final = 2**31 - 1
_USAGE: Final = {"include_usage": True}
_KNOWN: Final = frozenset(
    {
        *("model", "messages", "max_tokens", "max_completion_tokens", "temperature", "top_p"),
        *("stream", "stream_options"),
    }
)
_NEWER: Final = MappingProxyType({"max_tokens": "max_completion_tokens"})


class Plain(NamedTuple):
    """A body's request, and whether usage is to be told in its stream."""

    request: GenerateRequest
    usage: bool


def read_plain(body: dict[str, Any], *, messages_max: int) -> Plain | None:
    """Return what a plain body asks for; None for any other, right or wrong."""
    if not _KNOWN.issuperset(body):
        return None
    model, stream, options = body.get("model"), body.get("stream", False), None
    turns = _turns(body.get("messages"), messages_max)
    if turns is None or type(model) is not str or not 0 < len(model) <= _MODEL_MAX:
        return None
    if type(stream) is not bool:
        return None
    if "stream_options" in body:
        options = body["stream_options"]
        # Of booleans: 1 is True, and a mistake.
        if options != _USAGE or type(options["include_usage"]) is not bool or not stream:
            return None
    sampling = _sampling(body)
    if sampling is None:
        return None
    return Plain(
        GenerateRequest(model, (ChatPrompt(turns),), sampling, stream), usage=options is not None
    )


def _turns(messages: Any, messages_max: int) -> tuple[Turn, ...] | None:
    if type(messages) is not list or not 0 < len(messages) <= messages_max:
        return None
    turns: list[Turn] = []
    for message in messages:
        turn = plain_turn(message)
        if turn is None:
            return None
        turns.append(turn)
    return tuple(turns)


def _sampling(body: dict[str, Any]) -> Sampling | None:
    newer = body.get("max_completion_tokens")
    most = body.get("max_tokens") if newer is None else newer
    temperature, top_p = body.get("temperature"), body.get("top_p")
    if most is not None and (type(most) is not int or not 0 < most <= _INT32_MAX):
        return None
    # Numbers that are spelled as integers take the long way: there they become what engines are sent.
    if temperature is not None and (type(temperature) is not float or not 0 <= temperature <= 2):
        return None
    if top_p is not None and (type(top_p) is not float or not 0 < top_p <= 1):
        return None
    if newer is None:
        return Sampling(max_tokens=most, temperature=temperature, top_p=top_p)
    if body.get("max_tokens") is not None:
        return None
    return Sampling(max_tokens=most, temperature=temperature, top_p=top_p, where=_NEWER)
