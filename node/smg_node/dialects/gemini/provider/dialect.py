"""generateContent as vendors serve it: the provider dialect of Gemini models."""

from collections.abc import Collection
from typing import Final

from smg_node.core.generation.events import Begin
from smg_node.core.generation.request import GenerateRequest
from smg_node.dialects.gemini.provider.judge import ContentJudge
from smg_node.dialects.gemini.provider.listener import AnswerReader
from smg_node.dialects.gemini.provider.writer import write
from smg_node.dialects.provider_dialect import ProviderDialect, WriterOptions, Written


class GenerateContentApi:
    """Google's own API of its models, at Google or at Vertex; see `ProviderDialect`."""

    name = "generate_content"

    def write(self, request: GenerateRequest, options: WriterOptions) -> Written:
        """Return the body of a request, without model and streaming, which stand in the URL."""
        return write(request, options)

    def listen(
        self,
        begin: Begin,
        *,
        prompt_tokens: int,
        taken: Collection[str] = (),
        quirks: frozenset[str] = frozenset(),
    ) -> AnswerReader:
        """Return the listener of one answer; no quirk changes what it hears."""
        del quirks
        return AnswerReader(begin, prompt_tokens=prompt_tokens, taken=taken)

    def judge(self, quirks: frozenset[str] = frozenset()) -> ContentJudge:
        """Return the judge of one answer; no quirk changes it."""
        del quirks
        return ContentJudge()


PROVIDER: Final[ProviderDialect] = GenerateContentApi()
"""The one there is: it has no state."""
