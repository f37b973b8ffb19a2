"""A thousand lists of items of every type go in, and come out as they went in: by the response, and by the conversation."""

import json
from typing import Any

from smg_node.dialects.responses.events.list_bodies import list_body, page_of
from smg_node.dialects.responses.items.item_document import items_of, list_of
from smg_node.dialects.responses.request.conversations import ITEMS_MAX
from smg_node.history.service.response_service import ResponseService
from support.answers.random_items import item_lists, sent
from support.answers.responses import SAMPLES, items_from
from support.history.history_world import HistoryWorld, history_world, question

LISTS = 1_000
ALL = page_of({"order": "asc", "limit": "100"})
# Calls need their outputs and sealed texts their keys where a prompt is made of them.
ALONE = ("_call", "_call_output")
SEALED = ("compaction", "reasoning")


def shown(documents: Any) -> list[dict[str, Any]]:
    """Return a page of items as a client reads it, without their ids."""
    page = json.loads(list_body(documents, has_more=False))
    assert len({item["id"] for item in page["data"]}) == len(page["data"])
    return [sent(item) for item in page["data"]]


async def test_what_is_put_into_a_conversation_comes_out_of_it_equal() -> None:
    world = history_world()
    desk = world.desks.conversations
    seen: set[str] = set()
    for number, rows in enumerate(item_lists(9, lists=LISTS, items_max=ITEMS_MAX)):
        seen.update(row["type"] for row in rows)
        room = await world.conversation()
        added = await desk.add_items(world.access, room, items_from(rows))
        listed, more = await desk.list_items(world.access, room, ALL)
        assert not more
        assert list(listed) == list(added), number
        assert shown(listed) == [sent(row) for row in rows], number
        await desk.delete(world.access, room)
    assert seen == SAMPLES.keys()


async def test_what_a_response_is_given_comes_out_of_it_equal() -> None:
    world = history_world()
    for number, rows in enumerate(item_lists(10, lists=LISTS, items_max=6)):
        given = [row for row in rows if rendered_alone(row["type"])]
        made = await world.answer(input=[*given, question("?")])
        listed = await pages(world, world.desks.responses, made)
        assert shown(listed)[:-1] == [sent(row) for row in given], number
        again = items_of(list_of(items_of(b"[" + b",".join(listed) + b"]")))
        assert [item.document for item in again] == listed
        await world.desks.responses.delete(world.access, made)


def rendered_alone(kind: str) -> bool:
    return not kind.endswith(ALONE) and kind not in SEALED


async def pages(world: HistoryWorld, desk: ResponseService, made: str) -> list[bytes]:
    """Return the input of a response, read two items at a time."""
    listed: list[bytes] = []
    after, more = "", True
    while more:
        page = page_of({"order": "asc", "limit": "2", **({"after": after} if after else {})})
        documents, more = await desk.input_items(world.access, made, page)
        listed += documents
        after = json.loads(documents[-1])["id"]
    return listed
