"""Token service: tokenizes and detokenizes exactly as a generation does, in this process."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from smg_node.admission.admission import Admission
from smg_node.admission.ticket import Ticket
from smg_node.core.errors import invalid
from smg_node.core.generation.request import Prompt
from smg_node.core.request_context import RequestContext
from smg_node.fleet.models.served_model import ServedModel
from smg_node.http.ports.tokens import Tokenized
from smg_node.pipeline.placement.placer import Placer
from smg_node.pipeline.prompt.preparation import Preparer
from smg_node.tokens.tokenizer import Tokenizer

DECODED_AT_ONCE_MAX: Final = 2_048
"""Ids that are decoded on the loop; more are left to a thread."""


class LocalTokens:
    """Text to ids and back, exactly as a generation does it."""

    def __init__(self, placer: Placer, preparer: Preparer, admission: Admission | None) -> None:
        self._placer = placer
        self._preparer = preparer
        self._admission = admission

    async def admit(self, context: RequestContext, model: str) -> Ticket | None:
        """Charge a request for this model, None if nothing limits it; its holder settles or voids it."""
        # Whether its tokenizer is here is for what is done then.
        known = await self._placer.known(model, deadline_s=float("inf"))
        if self._admission is None:
            return None
        ticket = self._admission.ticket(context, known.name)
        if ticket is not None:
            try:
                await ticket.enter()
            except BaseException:
                ticket.void()
                raise
        return ticket

    async def tokenize(self, model: str, prompt: Prompt) -> Tokenized:
        """Render and encode one prompt."""
        prepared = await self._preparer.counted(prompt, await self._model(model))
        return Tokenized(prepared.ids, len(prepared.text))

    async def detokenize(self, model: str, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Return the text of `ids`; INVALID_REQUEST for an id outside the vocabulary."""
        tokenizer = (await self._model(model)).tokenizer
        work = partial(_text, tokenizer, ids, skip_special_tokens=skip_special_tokens)
        if len(ids) <= DECODED_AT_ONCE_MAX:
            return work()
        return await self._preparer.in_thread(work)

    async def _model(self, name: str) -> ServedModel:
        return await self._placer.model(name, deadline_s=float("inf"))


def _text(tokenizer: Tokenizer, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
    for at, token_id in enumerate(ids):
        if not 0 <= token_id < tokenizer.vocabulary:
            raise invalid(
                f"token id {token_id} is outside the vocabulary of {tokenizer.vocabulary}",
                f"tokens[{at}]",
            )
    return tokenizer.decode(ids, skip_special_tokens=skip_special_tokens)
