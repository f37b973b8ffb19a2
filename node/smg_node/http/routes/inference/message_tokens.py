"""Count route of the Messages API: how many tokens a body's prompt has, exactly as a generation would find."""

from collections.abc import Mapping
from typing import Final

import msgspec

from smg_node.core.generation.request import ChatPrompt
from smg_node.dialects.messages.dialect import MessagesDialect
from smg_node.dialects.messages.request.reader import CountedBody
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, name_list
from smg_node.http.middleware.caller_context import context_of
from smg_node.http.middleware.model_access import allow_model
from smg_node.http.routes.inference.charged_work import charged

_encode: Final = msgspec.json.Encoder().encode


class MessageTokenRoutes:
    """Counts tokens as a request that uses none, without sending anything to an engine."""

    def __init__(self, parts: HttpParts, bodies: BodyReader) -> None:
        self._parts = parts
        self._bodies = bodies

    async def count(self, request: HttpRequest) -> Reply:
        """Return `input_tokens`; where edits of the context were asked for, those before them as well."""
        parts, large = self._parts, self._bodies.large
        dialect = parts.dialects[MessagesDialect.name]
        assert isinstance(dialect, MessagesDialect), "the dialect of this name"
        raw = await self._bodies.json(request)
        body = await large.decoded(raw, nesting_max=parts.options.nesting_max)
        asked = await large.read_in_steps(
            raw, body, lambda body: dialect.count_steps(body, request)
        )
        request.model = asked.model
        allow_model(request)
        for name in asked.ignored:
            parts.meters.ignored_parameter(name)
        if asked.ignored:
            request.reply_headers["x-smg-ignored-params"] = name_list(asked.ignored)
        return Reply(
            200,
            _encode(
                await charged(parts, request, asked.model, lambda: self._counted(asked, request))
            ),
        )

    async def _counted(self, asked: CountedBody, request: HttpRequest) -> Mapping[str, object]:
        tokens = self._parts.tokens
        counted = await tokens.tokenize(
            asked.model, await self._shown(asked, asked.prompt, request)
        )
        told: dict[str, object] = {"input_tokens": len(counted.ids)}
        if asked.unedited is not None:
            before = counted
            if asked.unedited != asked.prompt:
                before = await tokens.tokenize(
                    asked.model, await self._shown(asked, asked.unedited, request)
                )
            told["context_management"] = {"original_input_tokens": len(before.ids)}
        return told

    async def _shown(
        self, asked: CountedBody, prompt: ChatPrompt, request: HttpRequest
    ) -> ChatPrompt:
        """Return the prompt with the tools of this side that its model would be shown."""
        show = self._parts.shown_prompt
        if asked.serving is None or show is None:
            return prompt
        context = context_of(request, self._parts.options, streamed=False)
        return await show(MessagesDialect.name, prompt, asked.serving, context, asked.model)
