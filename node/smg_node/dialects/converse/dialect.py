"""Provider dialect of Converse: models of Amazon Bedrock, whoever made them."""

from collections.abc import Collection
from typing import Final

import msgspec

from smg_node.core.generation.events import Begin
from smg_node.core.generation.request import GenerateRequest
from smg_node.dialects.converse.judge import ConverseJudge
from smg_node.dialects.converse.listener import ConverseListener
from smg_node.dialects.converse.vendor_answer import ANTHROPIC, BEDROCK
from smg_node.dialects.converse.writer import converse_fields
from smg_node.dialects.provider_dialect import ProviderDialect, WriterOptions, Written

CLAUDE: Final = "claude"
"""Quirk: the model is one of Anthropic's, though its name does not say so, as those of inference profiles."""
_CLAUDE_IDS: Final = "anthropic."


def issuer_of(model: str, quirks: Collection[str] = ()) -> str:
    """Return whose opaque state a model of Bedrock makes and reads."""
    return ANTHROPIC if _CLAUDE_IDS in model or CLAUDE in quirks else BEDROCK


class ConverseProvider:
    """`POST /model/ID/converse-stream` and `/converse`; see `ProviderDialect`. `issuer` is whose model it is."""

    name = "converse"

    def __init__(self, issuer: str = BEDROCK) -> None:
        self._issuer = issuer

    def write(self, request: GenerateRequest, options: WriterOptions) -> Written:
        """Return the body of a request with one chat, without model and streaming, which stand in the URL."""
        if CLAUDE in options.quirks:
            options = msgspec.structs.replace(options, issuer=ANTHROPIC)
        return converse_fields(request, options)

    def listen(
        self,
        begin: Begin,
        *,
        prompt_tokens: int,
        taken: Collection[str] = (),
        quirks: frozenset[str] = frozenset(),
    ) -> ConverseListener:
        """Return the listener of one answer."""
        issuer = ANTHROPIC if CLAUDE in quirks else self._issuer
        return ConverseListener(begin, prompt_tokens=prompt_tokens, taken=taken, issuer=issuer)

    def judge(self, quirks: frozenset[str] = frozenset()) -> ConverseJudge:
        """Return the judge of one answer."""
        return ConverseJudge()


def converse_provider(model: str) -> ProviderDialect:
    """Return the dialect as a model of that name speaks it."""
    return _OF_CLAUDE if issuer_of(model) == ANTHROPIC else _OF_OTHERS


_OF_CLAUDE: Final[ProviderDialect] = ConverseProvider(ANTHROPIC)
_OF_OTHERS: Final[ProviderDialect] = ConverseProvider()
