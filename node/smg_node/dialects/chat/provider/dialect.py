"""Provider dialect of Chat Completions: vendors that speak this API."""

from collections.abc import Collection
from typing import Final

from smg_node.core.generation.events import Begin
from smg_node.core.generation.request import GenerateRequest
from smg_node.dialects.chat.listener import ChunkReader
from smg_node.dialects.chat.provider.judge import ChatJudge
from smg_node.dialects.chat.provider.writer import chat_body
from smg_node.dialects.provider_dialect import ProviderDialect, WriterOptions, Written


class ChatProvider:
    """`POST /chat/completions` of a vendor; see `ProviderDialect`."""

    name = "chat"

    def write(self, request: GenerateRequest, options: WriterOptions) -> Written:
        """Return the body of a request with one chat."""
        return chat_body(request, options)

    def listen(
        self,
        begin: Begin,
        *,
        prompt_tokens: int,
        taken: Collection[str] = (),
        quirks: frozenset[str] = frozenset(),
    ) -> ChunkReader:
        """Return the listener of one answer."""
        return ChunkReader(begin, prompt_tokens=prompt_tokens, taken=taken, quirks=quirks)

    def judge(self, quirks: frozenset[str] = frozenset()) -> ChatJudge:
        """Return the judge of one answer."""
        return ChatJudge(quirks)


PROVIDER: Final[ProviderDialect] = ChatProvider()
"""The one there is: it has no state."""
