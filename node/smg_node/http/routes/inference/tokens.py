"""Token routes: text to token ids and back, exactly as a generation would."""

from collections.abc import Callable
from typing import Any, TypeVar

from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.tokenize.answer import detokenize_answer, tokenize_answer
from smg_node.dialects.tokenize.reader import read_detokenize, read_tokenize
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, name_list
from smg_node.http.middleware.model_access import allow_model
from smg_node.http.ports.tokens import Tokenized
from smg_node.http.routes.inference.charged_work import charged

T = TypeVar("T")


class TokenRoutes:
    """Serves a model's tokenizer."""

    def __init__(self, parts: HttpParts, bodies: BodyReader) -> None:
        self._parts = parts
        self._bodies = bodies

    async def tokenize(self, request: HttpRequest) -> Reply:
        """Return the ids, their number and the number of characters."""
        parts = self._parts
        asked = await self._read(request, read_tokenize)
        self._note(request, asked.model, asked.ignored)

        async def tokenized() -> list[Tokenized]:
            return [await parts.tokens.tokenize(asked.model, prompt) for prompt in asked.prompts]

        encoded = await charged(parts, request, asked.model, tokenized)
        answer = await self._bodies.large.made(
            sum(len(one.ids) for one in encoded), lambda: tokenize_answer(encoded, many=asked.many)
        )
        return Reply(200, answer)

    async def detokenize(self, request: HttpRequest) -> Reply:
        """Return the text of the ids."""
        parts = self._parts
        asked = await self._read(request, read_detokenize)
        self._note(request, asked.model, asked.ignored)
        skips = asked.skip_special_tokens

        async def texts() -> list[str]:
            tokens = parts.tokens
            return [
                await tokens.detokenize(asked.model, ids, skip_special_tokens=skips)
                for ids in asked.ids
            ]

        told = await charged(parts, request, asked.model, texts)
        return Reply(200, detokenize_answer(told, many=asked.many))

    async def _read(
        self, request: HttpRequest, reader: Callable[[dict[str, Any], ReaderOptions], T]
    ) -> T:
        parts, large = self._parts, self._bodies.large
        raw = await self._bodies.json(request)
        body = await large.decoded(raw, nesting_max=parts.options.nesting_max)
        return await large.read(raw, body, lambda body: reader(body, parts.reading))

    def _note(self, request: HttpRequest, model: str, ignored: tuple[str, ...]) -> None:
        request.model = model
        allow_model(request)
        for name in ignored:
            self._parts.meters.ignored_parameter(name)
        if ignored:
            request.reply_headers["x-smg-ignored-params"] = name_list(ignored)
