"""Provider dialect of Responses: vendors that speak this API."""

from collections.abc import Collection
from typing import Final

from smg_node.core.generation.events import Begin
from smg_node.core.generation.request import GenerateRequest
from smg_node.dialects.provider_dialect import ProviderDialect, WriterOptions, Written
from smg_node.dialects.responses.provider.judge import ResponsesJudge
from smg_node.dialects.responses.provider.listener import ResponsesListener
from smg_node.dialects.responses.provider.writer import responses_body


class ResponsesProvider:
    """`POST /responses` of a vendor; see `ProviderDialect`. `issuer` is whose its opaque state is; "" if its model's
    name tells.
    """

    name = "responses"

    def __init__(self, issuer: str = "") -> None:
        self._issuer = issuer

    def write(self, request: GenerateRequest, options: WriterOptions) -> Written:
        """Return the body of a request with one chat."""
        return responses_body(request, options)

    def listen(
        self,
        begin: Begin,
        *,
        prompt_tokens: int,
        taken: Collection[str] = (),
        quirks: frozenset[str] = frozenset(),
    ) -> ResponsesListener:
        """Return the listener of one answer."""
        return ResponsesListener(
            begin, prompt_tokens=prompt_tokens, taken=taken, issuer=self._issuer
        )

    def judge(self, quirks: frozenset[str] = frozenset()) -> ResponsesJudge:
        """Return the judge of one answer."""
        return ResponsesJudge()


PROVIDER: Final[ProviderDialect] = ResponsesProvider()
"""The one of vendors whose models' names tell whose their opaque state is."""
