"""Embedding routes: embeddings, rerank and classify, relayed or by engines over gRPC.

Requests are relayed to HTTP workers that have the API. Embeddings are made over gRPC where none has
it.
"""

from collections.abc import Mapping
from typing import Any

from smg_node.core.errors import SmgError
from smg_node.dialects.embeddings.answer import embeddings_answer
from smg_node.dialects.embeddings.reader import read_embeddings
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.keepalive import KeepaliveTimer
from smg_node.http.message.reply import Reply, Streamed, name_list
from smg_node.http.middleware.caller_context import context_of
from smg_node.http.middleware.error_replies import family_of
from smg_node.http.middleware.model_access import allow_model
from smg_node.http.routes.inference.relay_answers import Relaying
from smg_node.pipeline.relay.relay_request import APIS, Relayable, model_of, relayable


class EmbeddingRoutes:
    """Serves embeddings, rerank and classify."""

    def __init__(self, parts: HttpParts, bodies: BodyReader, pulse: KeepaliveTimer) -> None:
        self._parts = parts
        self._bodies = bodies
        self._relaying = Relaying(parts, pulse)

    async def relay(self, api_name: str, request: HttpRequest) -> Reply | Streamed:
        """Answer by an HTTP worker of the model."""
        raw, body = await self._read(request)
        return await self._relaying.answer(await self._relayable(api_name, raw, body), request)

    async def embeddings(self, request: HttpRequest) -> Reply | Streamed:
        """Answer with embeddings, by an HTTP worker if one has them, else by an engine."""
        raw, body = await self._read(request)
        api, model, parts = APIS["embeddings"], model_of(body), self._parts
        if parts.relays.has(model, api) or parts.relays.takes(model):
            try:
                asked = await self._relayable("embeddings", raw, body)
                return await self._relaying.answer(asked, request)
            except SmgError as error:
                if error.status != 501 or not parts.embedder.takes(model):
                    raise
                request.error_code = ""
        return await self._embedded(request, raw, body)

    async def _relayable(self, api: str, raw: bytes, body: dict[str, Any]) -> Relayable:
        return await self._bodies.large.made(len(raw), lambda: relayable(APIS[api], raw, body))

    async def _embedded(self, request: HttpRequest, raw: bytes, body: dict[str, Any]) -> Reply:
        parts, large = self._parts, self._bodies.large
        asked = await large.read(raw, body, lambda body: read_embeddings(body, parts.reading))
        del body
        request.model = asked.model
        allow_model(request)
        context = context_of(request, parts.options, streamed=False)
        run = parts.embedder.start(asked.model, asked.prompts, context, dimensions=asked.dimensions)
        try:
            found = await run.vectors()
        finally:
            request.worker = run.worker
            self._note(request, run.worker, run.attempts, asked.ignored)
            if run.ticket is not None:
                request.reply_headers.update(run.ticket.headers(family_of(request.route)))
        answer = await large.made(
            sum(map(len, found.vectors)),
            lambda: embeddings_answer(
                found.model, found.vectors, packed=asked.packed, prompt_tokens=found.prompt_tokens
            ),
        )
        return Reply(200, answer)

    def _note(
        self, request: HttpRequest, worker: str, attempts: int, ignored: tuple[str, ...]
    ) -> None:
        parts, headers = self._parts, request.reply_headers
        told: Mapping[str, str] = {
            "x-smg-node": parts.identity.node,
            "x-smg-attempts": str(attempts),
            **({"x-smg-routed-worker-id": worker} if worker else {}),
        }
        if parts.options.expose_routing_headers:
            headers.update(told)
        if ignored:
            headers["x-smg-ignored-params"] = name_list(ignored)
        for name in ignored:
            parts.meters.ignored_parameter(name)

    async def _read(self, request: HttpRequest) -> tuple[bytes, dict[str, Any]]:
        raw = await self._bodies.json(request)
        nesting_max = self._parts.options.nesting_max
        return raw, await self._bodies.large.decoded(raw, nesting_max=nesting_max)
