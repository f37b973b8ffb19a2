"""Operations on responses, and on the chains they make."""

from collections.abc import Sequence
from typing import Final

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import (
    Chain,
    PageAsk,
    Patch,
    ResponsePage,
    Status,
    StoredResponse,
)
from smg_storage.sql.operations.write_equality import is_patched, same_response
from smg_storage.sql.schema.row_mapping import check_size, of_tenant, response_of, response_values
from smg_storage.sql.unit_of_work import Work

_DELETED_AT_ONCE: Final = 200


def store_response(work: Work, record: StoredResponse) -> str:
    """Insert a response, or find it."""
    check_size(record.input)
    check_size(record.response)
    found = _locked(work, record.id) if work.careful else None
    if found is not None:
        if not _is_over(work, found):
            if same_response(found, record, without=work.skipped("responses")):
                return record.id
            raise StoreError(StoreErrorKind.CONFLICT, f"response {record.id} is another one")
        forget_responses(work, [record.id])
    rows = of_tenant(work.tables, "responses", work.tenant, [response_values(record)])
    work.change_all(work.say.responses.insert, rows)
    return record.id


def get_response(work: Work, response_id: str) -> StoredResponse | None:
    """Read a response."""
    found = work.row(work.say.responses.get, of_id=response_id)
    return response_of(found) if found is not None else None


def patch_response(
    work: Work, response_id: str, patch: Patch, from_statuses: Sequence[Status], token: int
) -> StoredResponse | None:
    """Change a response, if it is as it is thought to be."""
    found = _locked(work, response_id)
    if found is None or _is_over(work, found):
        return None
    if found.lease_token != token:
        raise StoreError(StoreErrorKind.CONFLICT, f"response {response_id} has another owner")
    if is_patched(found, patch, without=work.skipped("responses")):
        return found
    if found.status.is_final or found.status not in from_statuses:
        message = f"response {response_id} is {found.status.value}"
        raise StoreError(StoreErrorKind.CONFLICT, message)
    return _patch(work, found, patch)


def _patch(work: Work, found: StoredResponse, patch: Patch) -> StoredResponse:
    completed_us = found.completed_us if patch.completed_us is None else patch.completed_us
    changed = StoredResponse(
        id=found.id,
        status=patch.status or found.status,
        model=found.model,
        created_us=found.created_us,
        input=found.input,
        response=found.response if patch.response is None else patch.response,
        conversation_id=found.conversation_id,
        previous_response_id=found.previous_response_id,
        depth=found.depth,
        background=found.background,
        completed_us=0 if "completed_at" in work.skipped("responses") else completed_us,
        safety_identifier=found.safety_identifier,
        owner=found.owner,
        lease_token=found.lease_token,
        lease_until_us=found.lease_until_us,
        cancel_requested=found.cancel_requested,
        expires_us=found.expires_us if patch.expires_us is None else patch.expires_us,
        version=found.version + 1,
    )
    check_size(changed.response)
    say, values = work.say.responses, response_values(changed)
    wanted = ["status", "completed_at", "expires_at"]
    if patch.response is not None:
        wanted += ["raw_response", "document_bytes"]
    new = {f"new_{key}": values[key] for key in wanted if key not in work.skipped("responses")}
    statement = say.patch if patch.response is None else say.patch_document
    work.change(statement, of_id=found.id, **new)
    return changed


def delete_response(work: Work, response_id: str) -> bool:
    """Delete a response with all that hangs on it."""
    found = _locked(work, response_id)
    if found is None:
        return False
    forget_responses(work, [response_id])
    return not _is_over(work, found)


def forget_responses(work: Work, response_ids: Sequence[str]) -> None:
    """Delete responses, their events, and where items are in them."""
    for statement in work.say.responses.forget:
        work.change_each(statement, response_ids)


def get_chain(work: Work, response_id: str, items_max: int, bytes_max: int) -> Chain:
    """Read a response and what it continues."""
    items_max = max(items_max, 1)
    rows = work.rows(
        work.say.responses.chain, of_id=response_id, items_max=items_max, bytes_max=bytes_max
    )
    if not rows:
        return Chain(responses=(), complete=False, missing=response_id)
    if len({row.link for row in rows}) < len(rows):
        raise StoreError(StoreErrorKind.CORRUPT, f"response {response_id} continues itself")
    found = tuple(response_of(row) for row in rows if row.id is not None)
    previous = found[-1].previous_response_id
    if not previous:
        return Chain(responses=found, complete=True)
    if (
        len(found) < len(rows)
        or sum(len(each.input) + len(each.response) for each in found) > bytes_max
    ):
        return Chain(responses=found, complete=False)
    # One more was looked for, and would be the last row if it were there.
    return Chain(responses=found, complete=False, missing=previous)


def list_responses(work: Work, identifier: str, page: PageAsk) -> ResponsePage:
    """Read a part of the responses made for a person."""
    say = work.say.responses
    since = None
    if page.after:
        since = work.row(say.anchor, identifier=identifier, of_id=page.after)
        if since is None:
            message = f"there is no response {page.after} in the list"
            raise StoreError(StoreErrorKind.BAD_REFERENCE, message, missing=page.after)
    rows = work.rows(
        say.page[page.newest_first, bool(page.after)],
        identifier=identifier,
        since=since.created_at if since is not None else 0,
        after=page.after,
        up_to=page.limit + 1,
    )
    return ResponsePage(
        responses=tuple(response_of(row) for row in rows[: page.limit]),
        has_more=len(rows) > page.limit,
    )


def delete_responses(work: Work, identifier: str) -> int:
    """Delete all responses made for a person; return how many of them were not over."""
    alive = 0
    while True:
        rows = work.rows(work.say.responses.made_for, identifier=identifier, up_to=_DELETED_AT_ONCE)
        forget_responses(work, [row.id for row in rows])
        alive += sum(not 0 < row.expires_at <= work.now_us for row in rows)
        if len(rows) < _DELETED_AT_ONCE:
            return alive


def _locked(work: Work, response_id: str) -> StoredResponse | None:
    row = next(work.rows_of(work.say.responses.lock, [response_id]), None)
    return response_of(row) if row is not None else None


def _is_over(work: Work, record: StoredResponse) -> bool:
    return 0 < record.expires_us <= work.now_us
