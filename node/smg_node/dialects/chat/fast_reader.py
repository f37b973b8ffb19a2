"""Fast reader: parses plain chats (model, string messages, a few numbers) with one typed decoder.

The typed decoder reads such a body from its bytes at once, without a dictionary. It covers a part
of `reader`, and leaves everything else to it: other keys, odd values, and all errors. That both
give the same result is tested over bodies of all kinds.

A body's parameters besides its messages are nearly always those of an earlier body. So they are
cached, and such requests share one `Sampling` object: values derived from it are cached too, keyed
by its identity.
"""

from collections.abc import Mapping
from math import copysign
from operator import attrgetter
from types import MappingProxyType
from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from smg_node.core.generation.request import ChatPrompt, GenerateRequest, Sampling, Turn
from smg_node.dialects.chat.view import ChatView
from smg_node.dialects.dialect import ParsedBody

KNOWN_MAX: Final = 1_024
"""Wishes kept by a reader, each with its model's name; when there are more, it begins anew."""
_OLDER: Final[Mapping[str, str]] = MappingProxyType({})
_NEWER: Final = MappingProxyType({"max_tokens": "max_completion_tokens"})

_Tokens: TypeAlias = Annotated[int, Meta(ge=1, le=2**31 - 1)] | None
_Number: TypeAlias = float | None


class _Message(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A message that is complete with a role and a string."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str


class _Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    include_usage: bool


class _Body(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    model: Annotated[str, Meta(min_length=1, max_length=256)]
    messages: Annotated[list[_Message], Meta(min_length=1)]
    max_tokens: _Tokens = None
    max_completion_tokens: _Tokens = None
    temperature: _Number = None
    top_p: _Number = None
    stream: bool = False
    stream_options: _Options | UnsetType = UNSET


_Wishes: TypeAlias = tuple[
    str, int | None, int | None, _Number, _Number, bool, _Options | UnsetType
]
_Known: TypeAlias = tuple[Sampling, ChatView]
"""What a body wants besides its messages, and how its answer shall look."""

_role_of: Final = attrgetter("role")
_content_of: Final = attrgetter("content")
_decode: Final = msgspec.json.Decoder(_Body).decode


class PlainReader:
    """Reads plain bodies of at most `messages_max` messages.

    Their answers have the view `view`, or `with_usage` where usage is requested in the stream.
    """

    def __init__(self, *, messages_max: int, view: ChatView, with_usage: ChatView) -> None:
        self._messages_max = messages_max
        self._view = view
        self._with_usage = with_usage
        self._known: dict[_Wishes, _Known] = {}

    def read(self, raw: bytes) -> ParsedBody[ChatView] | None:
        """Return the parsed plain body; None for any other, right or wrong."""
        try:
            body = _decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        messages, stream = body.messages, body.stream
        if len(messages) > self._messages_max:
            return None
        wishes = (
            body.model,
            body.max_tokens,
            body.max_completion_tokens,
            body.temperature,
            body.top_p,
            stream,
            body.stream_options,
        )
        known = self._known.get(wishes) or self._understood(wishes)
        if known is None:
            return None
        turns = tuple(map(Turn, map(_role_of, messages), map(_content_of, messages)))
        return ParsedBody(
            GenerateRequest(wishes[0], (ChatPrompt(turns),), known[0], stream, alike=True), known[1]
        )

    def _understood(self, wishes: _Wishes) -> _Known | None:
        _, older, newer, temperature, top_p, stream, options = wishes
        # Only the long way knows whether a zero with a sign was spelled as an integer.
        if temperature is not None and (not 0 <= temperature <= 2 or copysign(1, temperature) < 0):
            return None
        if top_p is not None and not 0 < top_p <= 1:
            return None
        usage = options is not UNSET and stream and options.include_usage
        if options is not UNSET and not usage:
            return None
        if newer is not None and older is not None:
            return None
        sampling = Sampling(
            max_tokens=older if newer is None else newer,
            temperature=temperature,
            top_p=top_p,
            where=_OLDER if newer is None else _NEWER,
        )
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        known = self._known[wishes] = sampling, self._with_usage if usage else self._view
        return known
