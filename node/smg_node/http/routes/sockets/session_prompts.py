"""Session prompts: what a realtime answer starts from as a request for a generation, cut to the model's context.

A session goes on for long, so its conversation outgrows the context sooner or later. Which of it is
left out is decided as for `/v1/responses`: whole groups of items, the oldest first. Nothing is
measured while the conversation's bytes say that it fits.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol

from smg_node.core.generation.request import GenerateRequest
from smg_node.dialects.realtime.effects import Start
from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.dialects.responses.request.generate_request import generate_request
from smg_node.dialects.responses.request.response_request import ResponseRequest
from smg_node.http.ports.tokens import TokenService


class LeavesOut(Protocol):
    """Interface of a session, as far as it is told what no later prompt has either."""

    def left_out(self, response_id: str, places: Sequence[int]) -> None:
        """Note which places of an answer's history were left out."""
        ...


class SessionPrompts:
    """Makes the requests of one session; `context` is how many tokens its model takes, None where nobody knows."""

    def __init__(self, tokens: TokenService, context: int | None) -> None:
        self._tokens: Final = tokens
        self._context: Final = context

    async def request(self, start: Start, session: LeavesOut) -> GenerateRequest:
        """Return the request of an answer; INVALID_REQUEST `context_length_exceeded` where even the newest is too long."""
        items = (*start.history, *start.ask.items)
        if self._context is not None and start.truncation is not None and start.history:
            items = await self._fitted(start, items, self._context, session)
        return generate_request(start.ask, items)

    async def _fitted(
        self, start: Start, items: tuple[ItemDoc, ...], context: int, session: LeavesOut
    ) -> tuple[ItemDoc, ...]:
        # Loaded with the first session that has a history.
        from smg_node.history.context.truncation import Search, budget_of, layout_of, too_long

        rule, ask = start.truncation, start.ask
        assert rule is not None, "without a rule nothing is left out"
        budget = budget_of(context, ask.sampling.max_tokens)
        sizes = [len(item.document) for item in items]
        limited = rule.post_instructions
        # No token is shorter than a byte, and a template adds to each item less than its document has of JSON.
        most = budget if limited is None else min(budget, limited)
        if sum(sizes) + _fixed_bytes(ask) <= most:
            return items
        apart = 0 if rule.ratio == 1.0 and limited is None else await self._instructions(ask, items)
        whole = await self._count(ask, items)
        if whole <= rule.prompt_max(budget, instructions=apart):
            return items
        kept = rule.prompt_kept(budget, instructions=apart)
        layout = layout_of(items, new_from=len(start.history))
        groups = [layout.stay, *layout.may_go]
        search = Search([sum(sizes[place] for place in group) for group in groups], kept)
        while (count := search.wanted) is not None:
            chosen = [items[place] for place in layout.places(count)]
            search.measured(count, await self._count(ask, chosen))
        if search.best is None:
            raise too_long(search.shortest or 0, kept, context)
        places = layout.places(search.best)
        if rule.ratio < 1.0:
            gone = set(range(len(start.history))) - set(places)
            session.left_out(start.response_id, sorted(gone))
        return tuple(items[place] for place in places)

    async def _count(self, ask: ResponseRequest, items: Sequence[ItemDoc]) -> int:
        own = ask if len(items) >= len(ask.items) else replace(ask, items=())
        [prompt] = generate_request(own, items).prompts
        return len((await self._tokens.tokenize(ask.model, prompt)).ids)

    async def _instructions(self, ask: ResponseRequest, items: Sequence[ItemDoc]) -> int:
        """Return how many tokens the instructions and tools have: what a prompt is longer by with them."""
        newest = items[-1:]
        with_them = replace(ask, items=())
        without = replace(with_them, instructions=None, tools=())
        return max(await self._count(with_them, newest) - await self._count(without, newest), 0)


def _fixed_bytes(ask: ResponseRequest) -> int:
    """Return the bytes of what every prompt of an answer has."""
    # A character has four bytes at most, and a template may write schemas out in lines.
    return len(ask.instructions or "") * 4 + 2 * sum(len(repr(tool)) for tool in ask.tools)
