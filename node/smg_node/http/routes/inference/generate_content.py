"""Routes of generateContent: one path for a model and what is asked of it, `models/M:generateContent`."""

from typing import Final

from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.core.json_cursor import quoted
from smg_node.dialects.gemini.methods import COUNT as COUNT_TOKENS
from smg_node.dialects.gemini.methods import METHODS, SSE, STREAM, asked_of
from smg_node.dialects.gemini.presenter import ARRAY_KEEPALIVE
from smg_node.dialects.gemini.token_count import count_answer
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import JSON, Reply, Streamed, name_list
from smg_node.http.middleware.model_access import allow_model
from smg_node.http.routes.inference.charged_work import charged
from smg_node.http.routes.inference.generation import GenerationRoutes, StreamForm

DIALECT: Final = "gemini"
_ARRAY: Final = StreamForm({"content-type": JSON}, ARRAY_KEEPALIVE)
_FORMS: Final = ("", "json", SSE)


class GenerateContentRoutes:
    """Serves the methods of Google's models."""

    def __init__(self, parts: HttpParts, bodies: BodyReader, generation: GenerationRoutes) -> None:
        self._parts = parts
        self._bodies = bodies
        self._generation = generation

    async def serve(self, request: HttpRequest) -> Reply | Streamed:
        """Answer contents, at once or as a stream, or count their tokens."""
        name = request.values["id"]
        _, method = asked_of(name)
        if method not in METHODS:
            known = ", ".join(f":{each}" for each in METHODS)
            raise SmgError(
                ErrorKind.NOT_FOUND,
                f"there is nothing at POST models/{name[:200]}; a model's name is followed by one of {known}",
                code="unknown_url",
            )
        form = request.query.get("alt", "")
        if form not in _FORMS:
            raise invalid(f"alt: must be 'json' or 'sse'; got {quoted(form)}", "alt")
        if method == COUNT_TOKENS:
            return await self._count(request)
        array = _ARRAY if method == STREAM and form != SSE else None
        return await self._generation.serve(DIALECT, request, array)

    async def _count(self, request: HttpRequest) -> Reply:
        """Return how many tokens the prompt of these contents has."""
        parts, large = self._parts, self._bodies.large
        dialect = parts.dialects[DIALECT]
        raw = await self._bodies.json(request)
        body = await large.decoded(raw, nesting_max=parts.options.nesting_max)
        reading = await large.read(raw, body, lambda body: dialect.read(body, request))
        wish = reading.request
        request.model = wish.model
        allow_model(request)
        for ignored in wish.ignored:
            parts.meters.ignored_parameter(ignored)
        if wish.ignored:
            request.reply_headers["x-smg-ignored-params"] = name_list(wish.ignored)
        (prompt,) = wish.prompts
        encoded = await charged(
            parts, request, wish.model, lambda: parts.tokens.tokenize(wish.model, prompt)
        )
        return Reply(200, count_answer(len(encoded.ids)))
