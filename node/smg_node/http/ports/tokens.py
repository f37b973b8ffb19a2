"""Port of the token service: text to ids and back, and admission of those who ask for it."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from smg_node.admission.ticket import Ticket
from smg_node.core.generation.request import Prompt
from smg_node.core.request_context import RequestContext


class Tokenized(msgspec.Struct, frozen=True):
    """The ids of a prompt and how many characters its text had."""

    ids: Sequence[int]
    characters: int


class TokenService(Protocol):
    """Text to ids and back, exactly as a generation would."""

    async def tokenize(self, model: str, prompt: Prompt) -> Tokenized:
        """Render and encode one prompt."""
        ...

    async def admit(self, context: RequestContext, model: str) -> Ticket | None:
        """Charge a request for this model, None if nothing limits it; its holder settles or voids it.

        LimitedError if a limit does not let it in; NOT_FOUND for an unknown model.
        """
        ...

    async def detokenize(self, model: str, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Return the text of `ids`; INVALID_REQUEST for an id outside the vocabulary."""
        ...
