"""Scatter-gather: one query to the stores of all nodes, merged; for a tenant's lists and totals.

No partial answers: while one of the nodes does not answer, the query fails.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import aclosing
from typing import Final, TypeVar

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import Access, PageAsk, ResponsePage, StoredResponse, StoreFigures
from smg_storage.store import HistoryStore

PAGE_MAX: Final = 100

T = TypeVar("T")
Place = tuple[int, str]
"""Where a response stands in a list: when it was made, and its id."""


async def all_of(asked: Sequence[Awaitable[T]]) -> Sequence[T]:
    """Return all answers, in order; the first failure ends it."""
    tasks: list[asyncio.Task[T]] = []
    try:
        async with asyncio.TaskGroup() as group:
            tasks += [group.create_task(_one(each)) for each in asked]
    except* StoreError as failures:
        raise _first(failures) from None
    return [task.result() for task in tasks]


async def _one(asked: Awaitable[T]) -> T:
    return await asked


def _first(failures: BaseExceptionGroup[StoreError]) -> StoreError:
    found = failures.exceptions[0]
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


async def responses_of(
    stores: Sequence[HistoryStore],
    owning: HistoryStore,
    access: Access,
    identifier: str,
    page: PageAsk,
) -> ResponsePage:
    """Return a page of an identifier's responses, merged from all stores.

    `owning` is the store with the response after which the page begins.
    """
    after: Place | None = None
    if page.after:
        record = await owning.get_response(access, page.after)
        if record is None or record.safety_identifier != identifier:
            message = f"there is no response {page.after}"
            raise StoreError(StoreErrorKind.BAD_REFERENCE, message, missing=page.after)
        after = _place(record)
    parts = await all_of(
        [
            _beyond(_listed(store, access, identifier, start, page), page, after)
            for store in stores
            for start in [page.after if store is owning else ""]
        ]
    )
    merged = sorted((one for part in parts for one in part), key=_place, reverse=page.newest_first)
    return ResponsePage(merged[: page.limit], has_more=len(merged) > page.limit)


async def _beyond(
    listed: AsyncGenerator[StoredResponse, None], page: PageAsk, after: Place | None
) -> Sequence[StoredResponse]:
    """Return the next ones of one store, one more than wanted."""
    found: list[StoredResponse] = []
    async with aclosing(listed):
        async for record in listed:
            place = _place(record)
            if after is None or (place < after if page.newest_first else place > after):
                found.append(record)
                if len(found) > page.limit:
                    break
    return found


async def _listed(
    store: HistoryStore, access: Access, identifier: str, after: str, page: PageAsk
) -> AsyncGenerator[StoredResponse, None]:
    while True:
        ask = PageAsk(limit=PAGE_MAX, after=after, newest_first=page.newest_first)
        found = await store.list_identifier_responses(access, identifier, ask)
        for record in found.responses:
            yield record
        if not found.has_more:
            return
        after = found.responses[-1].id


def _place(record: StoredResponse) -> Place:
    return record.created_us, record.id


def summed(figures: Sequence[StoreFigures]) -> StoreFigures:
    """Return the sum of all figures; a figure that one store does not know is unknown in the sum."""
    return StoreFigures(
        conversations=_sum([one.conversations for one in figures]),
        items=_sum([one.items for one in figures]),
        responses=_sum([one.responses for one in figures]),
        bytes=_sum([one.bytes for one in figures]),
    )


def _sum(counts: Sequence[int]) -> int:
    return -1 if any(count < 0 for count in counts) else sum(counts)


def merged(found: Sequence[Mapping[str, T]]) -> Mapping[str, T]:
    """Return the union of all findings."""
    return {key: value for part in found for key, value in part.items()}
