"""Operations on conversations and their items."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Row

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.located_item import located_item
from smg_storage.records import (
    Conversation,
    Item,
    ItemPage,
    Location,
    PageAsk,
    Side,
    Status,
    StoredResponse,
)
from smg_storage.sql.operations.turn_plan import Growth, Plan
from smg_storage.sql.operations.turns import look, write
from smg_storage.sql.operations.write_equality import same_conversation, same_item
from smg_storage.sql.schema.row_mapping import (
    check_size,
    conversation_of,
    conversation_values,
    item_of,
    item_values,
    new_values,
    of_tenant,
)
from smg_storage.sql.unit_of_work import Work

_ITEMS: Final = "conversation_items"


def create_conversation(work: Work, record: Conversation) -> Conversation:
    """Insert a conversation, or find it."""
    check_size(record.metadata)
    found = _locked(work, record.id) if work.careful else None
    if found is not None:
        there = conversation_of(found)
        if not _is_over(work, there.expires_us):
            if same_conversation(there, record):
                return there
            raise StoreError(StoreErrorKind.CONFLICT, f"conversation {record.id} is another one")
        _forget(work, record.id)
    rows = of_tenant(work.tables, "conversations", work.tenant, [conversation_values(record)])
    work.change_all(work.say.conversations.insert, rows)
    return record


def get_conversation(work: Work, conversation_id: str) -> Conversation | None:
    """Read a conversation."""
    found = work.row(work.say.conversations.get, of_id=conversation_id)
    return conversation_of(found) if found is not None else None


def update_conversation(
    work: Work, conversation_id: str, metadata: bytes, now_us: int, if_version: int | None
) -> Conversation | None:
    """Give it other metadata."""
    check_size(metadata)
    row = _locked(work, conversation_id)
    if row is None or _is_over(work, row.expires_at):
        return None
    found = conversation_of(row)
    if found.metadata == metadata:
        return found
    if if_version not in (None, found.version):
        raise StoreError(
            StoreErrorKind.CONFLICT,
            f"conversation {conversation_id} has version {found.version}, not {if_version}",
        )
    work.change(
        work.say.conversations.describe,
        of_id=conversation_id,
        new_metadata=metadata,
        new_updated=now_us,
    )
    return Conversation(
        id=found.id,
        created_us=found.created_us,
        updated_us=now_us,
        metadata=metadata,
        version=found.version + 1,
        expires_us=found.expires_us,
    )


def delete_conversation(work: Work, conversation_id: str) -> bool:
    """Delete it, its links, and items that are linked nowhere else."""
    row = _locked(work, conversation_id)
    if row is None:
        return False
    _forget(work, conversation_id)
    return not _is_over(work, row.expires_at)


def forget_conversations(work: Work, conversation_ids: Sequence[str]) -> None:
    """Delete some that are over."""
    for conversation_id in conversation_ids:
        _forget(work, conversation_id)


def create_item(work: Work, record: Item) -> Item:
    """Insert an item, or find it."""
    check_size(record.document)
    found = None
    if work.careful:
        for row in work.rows_of(work.say.items.lock, [record.id]):
            found = item_of(row)
    if found is None:
        rows = of_tenant(work.tables, _ITEMS, work.tenant, [{**item_values(record), "refs": 0}])
        work.change_all(work.say.items.insert, rows)
        return record
    if _is_over(work, found.expires_us):
        values = new_values(work.tables, _ITEMS, work.tenant, item_values(record))
        work.change_all(work.say.items.replace, [values])
        return record
    if not same_item(found, record, without=work.skipped(_ITEMS)):
        raise StoreError(StoreErrorKind.CONFLICT, f"item {record.id} is another one")
    return found


def append(work: Work, growth: Growth) -> Sequence[int]:
    """Insert items, and link items to a conversation."""
    for record in growth.items:
        check_size(record.document)
    seen = look(work, [], [growth.conversation_id], growth.items, growth.links)
    plan = Plan(seen, now_us=work.now_us, items_without=work.skipped(_ITEMS))
    positions = plan.append(growth)
    write(work, plan.writes, now_us=growth.now_us)
    return positions


def list_items(work: Work, conversation_id: str, page: PageAsk) -> ItemPage | None:
    """Read a part of a conversation; one row more than is asked for tells whether there is more."""
    rows = work.rows(
        work.say.items.page[page.newest_first, bool(page.after)],
        of_id=conversation_id,
        after=page.after,
        up_to=page.limit + 1,
    )
    if not rows:
        return None
    if page.after and rows[0].anchor is None:
        message = f"there is no item {page.after} in {conversation_id}"
        raise StoreError(StoreErrorKind.BAD_REFERENCE, message, missing=page.after)
    return _page(rows[: page.limit], has_more=len(rows) > page.limit)


def newest_items(
    work: Work, conversation_id: str, items_max: int, bytes_max: int
) -> ItemPage | None:
    """Read the newest items, by number and bytes."""
    items_max = max(items_max, 1)
    rows = work.rows(
        work.say.items.newest,
        of_id=conversation_id,
        up_to=items_max + 1,
        items_max=items_max,
        bytes_max=bytes_max,
    )
    if not rows:
        return None
    known = rows[0].known or 0
    return _page(rows, has_more=known > len(rows))


def _page(rows: Sequence[Row[Any]], *, has_more: bool) -> ItemPage:
    # A conversation without items is one row without an item.
    filled = [row for row in rows if row.position is not None]
    return ItemPage(
        items=tuple(item_of(row) for row in filled),
        positions=tuple(row.position for row in filled),
        has_more=has_more,
    )


def find_items(work: Work, item_ids: Sequence[str]) -> Mapping[str, Item]:
    """Read items by id: rows of their own, and pieces of responses."""
    found: dict[str, Item] = {}
    inside: list[Location] = []
    responses: dict[str, StoredResponse] = {}
    for row in work.rows_of(work.say.items.find, item_ids):
        if row.inside == "":
            found[row.item] = item_of(row)
            continue
        side = Side(row.side)
        inside.append(Location(row.item, row.inside, side, row.idx))
        if row.response is not None:
            responses[row.inside] = _answer(row)
    for location in inside:
        response = responses.get(location.response_id)
        if response is not None and location.item_id not in found:
            found[location.item_id] = located_item(response, location)
    return found


def _answer(row: Row[Any]) -> StoredResponse:
    """The documents of a response, as far as an item in it needs them."""
    return StoredResponse(
        id=row.response,
        status=Status.COMPLETED,
        model="",
        created_us=row.answered_at,
        input=row.input,
        response=row.raw_response,
        expires_us=row.answer_expires_at,
    )


def is_item_linked(work: Work, conversation_id: str, item_id: str) -> bool:
    """Read whether there is such a link."""
    linked = work.say.items.is_linked
    return work.row(linked, of_conversation=conversation_id, of_id=item_id) is not None


def delete_item(work: Work, conversation_id: str, item_id: str) -> bool:
    """Unlink an item, and delete it if nothing links it."""
    row = _locked(work, conversation_id)
    if row is None or _is_over(work, row.expires_at):
        return False
    say = work.say.items
    if not work.change(say.unlink, of_conversation=conversation_id, of_id=item_id):
        return False
    work.change(say.leave, of_id=item_id)
    work.change(say.drop_unused, of_id=item_id)
    return True


def _locked(work: Work, conversation_id: str) -> Row[Any] | None:
    return next(work.rows_of(work.say.conversations.lock, [conversation_id]), None)


def _forget(work: Work, conversation_id: str) -> None:
    for statement in work.say.conversations.forget:
        work.change(statement, of_id=conversation_id)


def _is_over(work: Work, expires_us: int) -> bool:
    return 0 < expires_us <= work.now_us
