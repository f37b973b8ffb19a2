"""Compaction: a history summarised by the model itself, which a client continues from instead."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final

from msgspec import structs

from smg_node.core.generation.answer import Answer, Collector
from smg_node.core.generation.request import ChatPrompt, GenerateRequest, ToolChoice, Turn
from smg_node.core.request_context import RequestContext
from smg_node.dialects.responses.events.list_bodies import compaction_body, compaction_item
from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.dialects.responses.request.response_request import ResponseRequest
from smg_node.history.context.sealed_content import sealer
from smg_node.history.service.history_parts import HistoryParts
from smg_node.history.service.response_service import ResponseService
from smg_node.history.turns.response_run import events_of
from smg_node.pipeline.generation.run_interface import Run
from smg_storage.ids import new_id
from smg_storage.records import Access

SUMMARY_TOKENS_MAX: Final = 2_048
"""How long a summary may become, where nobody says otherwise."""
_TASK: Final = (
    "Write a summary of this conversation, for yourself: it will stand in its place, and you will go on from it"
    " without seeing anything else. Keep what was asked for and why, every fact, name, number, path and identifier that"
    " is still needed, what was decided, what was done with which result, what failed, and what is left to do."
    " Answer with the summary only."
)


@dataclass(slots=True, eq=False)
class Compaction:
    """A compaction in progress: `run` is its generation, `body` its result."""

    run: Run
    wish: GenerateRequest
    _parts: HistoryParts
    _access: Access
    _model: str
    _items: Sequence[ItemDoc]
    _thread: str
    _request_id: str

    async def body(self) -> bytes:
        """Run it, and return the public object; raises the generation's error."""
        collector = Collector(1)
        async with aclosing(events_of(self.run)) as batches:
            async for batch in batches:
                collector.feed(batch)
        return self._said(collector.answer())

    def _said(self, answer: Answer) -> bytes:
        parts = self._parts
        now_ms = parts.clock.now_ms()
        seal = sealer(parts.vault, tenant=self._access.tenant, model=self._model)
        item_id = new_id("cmp", self._thread, now_ms=now_ms, chance=parts.rng)
        summary = compaction_item(item_id, seal(answer.choices[0].text()))
        questions = [item for item in self._items if item.type == "message" and item.role == "user"]
        response_id = new_id("resp", self._thread, now_ms=now_ms, chance=parts.rng)
        parts.named(response_id, self._request_id)
        return compaction_body(
            response_id,
            created_s=now_ms // 1000,
            output=[*questions, summary],
            usage=answer.usage,
        )


class Compactor:
    """Starts compactions."""

    def __init__(self, parts: HistoryParts, desk: ResponseService) -> None:
        self._parts = parts
        self._desk = desk

    async def start(
        self, ask: ResponseRequest, context: RequestContext, access: Access
    ) -> Compaction:
        """Return a compaction of the request with its history; nothing of it is stored."""
        quiet = replace(ask, store=False, tools=(), choice=ToolChoice(), stream=False, serving=None)
        selected = await self._desk.select(quiet, context, access)
        wish = _summing(selected.wish)
        return Compaction(
            run=self._parts.generations.start("responses", wish, context),
            wish=wish,
            _parts=self._parts,
            _access=access,
            _model=selected.model,
            _items=selected.hydrated.items,
            _thread=selected.hydrated.thread,
            _request_id=context.request_id,
        )


def _summing(wish: GenerateRequest) -> GenerateRequest:
    """Return the request that asks for a summary of the same prompt."""
    prompt = wish.prompts[0]
    assert isinstance(prompt, ChatPrompt), "items become turns"
    turns = (*prompt.turns, Turn("user", _TASK))
    sampling = structs.replace(
        wish.sampling,
        constraint=None,
        logprobs=None,
        max_tokens=wish.sampling.max_tokens or SUMMARY_TOKENS_MAX,
    )
    prompt = structs.replace(prompt, turns=turns)
    return structs.replace(wish, prompts=(prompt,), sampling=sampling, stream=False)
