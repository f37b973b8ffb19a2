"""Turns as writes: reads what a plan needs to know, and writes what it decided.

Rows are locked in one order everywhere, conversations before responses before items, each by their ids, so that two
groups wait for each other in one direction only. The first time a turn is assumed to be new, as nearly all are: what
would only be there after a repetition is not looked for, and an INSERT that fails makes everything be done again,
carefully.
"""

from collections.abc import Sequence

from smg_storage.errors import StoreError
from smg_storage.records import (
    NEVER_US,
    Committed,
    Idempotency,
    Item,
    StoredResponse,
    Turn,
)
from smg_storage.sql.operations.turn_plan import Growing, Plan, Seen, Writes
from smg_storage.sql.schema.row_mapping import (
    check_size,
    conversation_of,
    item_of,
    item_values,
    location_values,
    new_values,
    of_tenant,
    response_of,
    response_values,
)
from smg_storage.sql.statements.responses import KEPT_BY_ROW
from smg_storage.sql.unit_of_work import Work


def commit_turns(work: Work, turns: Sequence[tuple[str, Turn]]) -> Sequence[Committed | StoreError]:
    """Write turns of tenants, as far as each can be; return what became of each."""
    outcomes: dict[int, Committed | StoreError] = {}
    for tenant in sorted({tenant for tenant, _ in turns}):
        mine = [(place, turn) for place, (whose, turn) in enumerate(turns) if whose == tenant]
        outcomes |= _commit(work.for_tenant(tenant), mine)
    return [outcomes[place] for place in range(len(turns))]


def _commit(work: Work, numbered: Sequence[tuple[int, Turn]]) -> dict[int, Committed | StoreError]:
    turns = [turn for _, turn in numbered]
    seen = look(
        work,
        turns,
        [turn.response.conversation_id for turn in turns if turn.response.conversation_id],
        [item for turn in turns for item in turn.items],
        [item_id for turn in turns for item_id in turn.links],
    )
    plan = Plan(
        seen,
        now_us=work.now_us,
        items_without=work.skipped("conversation_items"),
        responses_without=work.skipped("responses"),
    )
    outcomes: dict[int, Committed | StoreError] = {}
    for place, turn in numbered:
        try:
            _check_sizes(turn)
            outcomes[place] = plan.turn(turn)
        except StoreError as error:
            outcomes[place] = error
    write(work, plan.writes, now_us=work.now_us)
    return outcomes


def _check_sizes(turn: Turn) -> None:
    for document in (turn.response.input, turn.response.response):
        check_size(document)
    for item in turn.items:
        check_size(item.document)


def look(
    work: Work,
    turns: Sequence[Turn],
    conversation_ids: Sequence[str],
    items: Sequence[Item],
    links: Sequence[str],
) -> Seen:
    """Read, and lock, what the writing of all this depends on."""
    seen = Seen()
    for row in work.rows_of(work.say.conversations.lock, conversation_ids):
        if not _is_over(work, row.expires_at):
            seen.conversations[row.id] = Growing(
                conversation_of(row), row.next_position, row.expires_at
            )
    _look_at_responses(work, seen, turns)
    own = {item.id for item in items}
    # What is final may be this very turn, which is then answered with its items where they are.
    maybe_there = work.careful or any(each.status.is_final for each in seen.responses.values())
    asked = {*links, *own} if maybe_there else set(links) - own
    for row in work.rows_of(work.say.items.lock, sorted(asked)):
        if _is_over(work, row.expires_at):
            seen.items_over.add(row.id)
        else:
            seen.items[row.id] = item_of(row)
    known = sorted(set(links) & ({*seen.items, *seen.items_over}))
    if conversation_ids and known:
        _look_at_links(work, seen, sorted(set(conversation_ids)), known)
    _look_at_the_rest(work, seen, turns)
    return seen


def _look_at_responses(work: Work, seen: Seen, turns: Sequence[Turn]) -> None:
    asked = [
        turn.response.id for turn in turns if work.careful or turn.token or turn.response.background
    ]
    for row in work.rows_of(work.say.responses.lock, asked):
        if _is_over(work, row.expires_at):
            seen.responses_over.add(row.id)
        else:
            seen.responses[row.id] = response_of(row)


def _look_at_links(
    work: Work, seen: Seen, conversation_ids: Sequence[str], item_ids: Sequence[str]
) -> None:
    for conversation_id in conversation_ids:
        linked = work.rows_of(work.say.items.linked, item_ids, conversation_ids=[conversation_id])
        for row in linked:
            seen.linked[row.conversation_id, row.item_id] = row.position


def _look_at_the_rest(work: Work, seen: Seen, turns: Sequence[Turn]) -> None:
    keys = [turn.idempotency.key for turn in turns if turn.idempotency is not None]
    for row in work.rows_of(work.say.keys.lock, keys):
        seen.keys[row.idem_key] = Idempotency(row.idem_key, row.digest, row.expires_at)
        seen.key_responses[row.idem_key] = row.response_id
    if work.careful:
        places = [location.item_id for turn in turns for location in turn.locations]
        seen.located |= {row.item_id for row in work.rows_of(work.say.responses.located, places)}


def write(work: Work, writes: Writes, *, now_us: int) -> None:
    """Write what was planned, each kind at once. `now_us` is when conversations grow."""
    tables, tenant, say = work.tables, work.tenant, work.say
    for statement in say.responses.forget:
        work.change_each(statement, writes.responses_over)
    work.change_all(
        say.responses.insert,
        of_tenant(
            tables, "responses", tenant, [response_values(each) for each in writes.new_responses]
        ),
    )
    work.change_all(say.responses.replace, [_replacing(work, each) for each in writes.replaced])
    _write_items(work, writes)
    if writes.links:
        _write_links(work, writes, now_us)
    places = sorted(writes.locations, key=lambda location: location.item_id)
    work.change_all(
        say.responses.locate,
        of_tenant(tables, "item_locations", tenant, [location_values(each) for each in places]),
    )
    _write_keys(work, writes)


def _replacing(work: Work, response: StoredResponse) -> dict[str, object]:
    """A response written over the one that was begun: who runs it is the row's own business."""
    values = response_values(response)
    kept = {key: value for key, value in values.items() if key == "id" or key not in KEPT_BY_ROW}
    return new_values(work.tables, "responses", work.tenant, kept)


def _write_items(work: Work, writes: Writes) -> None:
    tables, tenant, say = work.tables, work.tenant, work.say.items
    rows = [
        {**item_values(item), "refs": writes.new_refs.get(item_id, 0)}
        for item_id, item in sorted(writes.new_items.items())
    ]
    work.change_all(say.insert, of_tenant(tables, "conversation_items", tenant, rows))
    revived = sorted(writes.revived_items, key=lambda item: item.id)
    work.change_all(
        say.replace,
        [new_values(tables, "conversation_items", tenant, item_values(item)) for item in revived],
    )
    work.change_each(say.use, writes.used_items)


def _write_links(work: Work, writes: Writes, now_us: int) -> None:
    rows = [
        {
            "conversation_id": conversation_id,
            "position": position,
            "item_id": item_id,
            "added_at": now_us,
        }
        for conversation_id, position, item_id in writes.links
    ]
    links = of_tenant(work.tables, "conversation_item_links", work.tenant, rows)
    work.change_all(work.say.items.link, links)
    added: dict[str, int] = {}
    for conversation_id, _, _ in writes.links:
        added[conversation_id] = added.get(conversation_id, 0) + 1
    work.change_all(
        work.say.conversations.grow,
        [
            {
                "of_tenant": work.tenant,
                "of_id": conversation_id,
                "new_version": growing.record.version + added[conversation_id],
                "new_position": growing.next_position,
                "new_updated": max(growing.record.updated_us, now_us),
                "new_expires": growing.ends_us,
            }
            for conversation_id, growing in sorted(writes.grown.items())
        ],
    )


def _write_keys(work: Work, writes: Writes) -> None:
    rows = [
        {
            "idem_key": key.key,
            "digest": key.digest,
            "response_id": response_id,
            "expires_at": key.expires_us,
        }
        for key, response_id in writes.new_keys
    ]
    work.change_all(
        work.say.keys.insert, of_tenant(work.tables, "idempotency_keys", work.tenant, rows)
    )
    work.change_all(
        work.say.keys.replace,
        [
            {
                "of_tenant": work.tenant,
                "of_id": key.key,
                "new_digest": key.digest,
                "new_response_id": response_id,
                "new_expires_at": key.expires_us,
            }
            for key, response_id in writes.replaced_keys
        ],
    )


def _is_over(work: Work, expires_us: int) -> bool:
    return expires_us != NEVER_US and expires_us <= work.now_us
