"""Fast reader of Messages bodies: parses plain ones (a model, string messages, a few numbers) with a typed decoder.

It covers a part of `reader`, and leaves everything else to it: other keys, blocks, neighbours of one role,
an assistant's text at the end, odd values, and all errors. That both give the same result is tested over
bodies of all kinds. A body's parameters besides its messages are nearly always those of an earlier one: they
are cached, and such requests share one `Sampling` object.
"""

from math import copysign
from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from smg_node.core.generation.request import ChatPrompt, GenerateRequest, Sampling, Turn
from smg_node.dialects.dialect import ParsedBody
from smg_node.dialects.messages.request.system_messages import BILLING
from smg_node.dialects.messages.view import MessagesView

KNOWN_MAX: Final = 1_024
"""Wishes kept by a reader, each with its model's name; when there are more, it begins anew."""

_Number: TypeAlias = float | None


class _Message(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    role: Literal["user", "assistant"]
    content: str


class _Body(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    model: Annotated[str, Meta(min_length=1, max_length=256)]
    max_tokens: Annotated[int, Meta(ge=1, le=2**31 - 1)]
    messages: Annotated[list[_Message], Meta(min_length=1, max_length=100_000)]
    system: str | None = None
    temperature: _Number = None
    top_p: _Number = None
    stream: bool = False


_Wishes: TypeAlias = tuple[str, int, _Number, _Number]
_Known: TypeAlias = tuple[Sampling, MessagesView]

_decode: Final = msgspec.json.Decoder(_Body).decode
_FIRST: Final = "user"


class PlainReader:
    """Reads plain bodies: user and assistant in turn, the user first and last."""

    def __init__(self, *, drops_billing: bool) -> None:
        self._drops_billing = drops_billing
        self._known: dict[_Wishes, _Known] = {}

    def read(self, raw: bytes) -> ParsedBody[MessagesView] | None:
        """Return the parsed plain body; None for any other, right or wrong."""
        try:
            body = _decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        messages, system = body.messages, body.system
        if len(messages) % 2 == 0:
            return None
        turns: list[Turn] = []
        if system:
            if self._drops_billing and system.startswith(BILLING):
                return None
            turns.append(Turn("system", system))
        wanted, other = _FIRST, "assistant"
        for message in messages:
            if message.role != wanted:
                return None
            wanted, other = other, wanted
            turns.append(Turn(message.role, message.content))
        wishes = (body.model, body.max_tokens, body.temperature, body.top_p)
        known = self._known.get(wishes) or self._understood(wishes)
        if known is None:
            return None
        prompt = ChatPrompt(tuple(turns))
        return ParsedBody(
            GenerateRequest(body.model, (prompt,), known[0], body.stream, alike=True), known[1]
        )

    def _understood(self, wishes: _Wishes) -> _Known | None:
        model, most, temperature, top_p = wishes
        # Only the long way knows whether a zero with a sign was spelled as an integer.
        if temperature is not None and (not 0 <= temperature <= 2 or copysign(1, temperature) < 0):
            return None
        if top_p is not None and not 0 < top_p <= 1:
            return None
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        sampling = Sampling(max_tokens=most, temperature=temperature, top_p=top_p)
        known = self._known[wishes] = sampling, MessagesView(model)
        return known
