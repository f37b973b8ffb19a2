"""Provider dialect of Messages: vendors that speak this API."""

from collections.abc import Collection
from typing import Final

from smg_node.core.generation.events import Begin
from smg_node.core.generation.request import GenerateRequest
from smg_node.dialects.messages.provider.judge import MessagesJudge
from smg_node.dialects.messages.provider.listener import MessagesListener
from smg_node.dialects.messages.provider.writer import messages_fields
from smg_node.dialects.provider_dialect import ProviderDialect, WriterOptions, Written


class MessagesProvider:
    """`POST /v1/messages` of a vendor; see `ProviderDialect`."""

    name = "messages"

    def write(self, request: GenerateRequest, options: WriterOptions) -> Written:
        """Return the body of a request with one chat."""
        return messages_fields(request, options)

    def listen(
        self,
        begin: Begin,
        *,
        prompt_tokens: int,
        taken: Collection[str] = (),
        quirks: frozenset[str] = frozenset(),
    ) -> MessagesListener:
        """Return the listener of one answer."""
        return MessagesListener(begin, prompt_tokens=prompt_tokens, taken=taken)

    def judge(self, quirks: frozenset[str] = frozenset()) -> MessagesJudge:
        """Return the judge of one answer."""
        return MessagesJudge()


PROVIDER: Final[ProviderDialect] = MessagesProvider()
"""The one there is: it has no state."""
