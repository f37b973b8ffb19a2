"""Approval answers: an approval of a tool's call is answered once, at whichever node the answer arrives first.

    reserve `mcpa:<id of the approval>` ──▶ new: the response runs the call, or tells the model that it may not
       ├──▶ answered so before, by a response that is over and was told the same beside it: that response again
       └──▶ under way, or broken since, or answered otherwise or beside something else: 409 `approval_already_answered`

The key stays for longer than an approval may be answered, so a call that may have been run is never run again. It is
given back only by a response that broke before the call had begun.
"""

import logging
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, Final

from smg_node.core.cooperative_steps import Steps
from smg_node.core.errors import SmgError, invalid
from smg_node.core.generation.events import BlockStart, Event, Fail
from smg_node.core.generation.tool_serving import ApprovedCall
from smg_node.core.json_cursor import quoted
from smg_node.dialects.responses.items.item_document import ItemDoc, items_in_steps
from smg_node.dialects.responses.request.idempotency_key import APPROVALS, DIGEST_BYTES
from smg_node.history.context.paced_steps import paced
from smg_node.history.errors import (
    AnsweredBeforeError,
    already_answered,
    answered_beside,
    asking_store,
)
from smg_node.history.turns.idempotency import ANSWERS
from smg_storage.errors import StoreError
from smg_storage.ids import made_ms
from smg_storage.records import Access, Idempotency, KeyState
from smg_storage.store import HistoryStore

ANSWERABLE_S: Final = 86_400
"""For how long an approval may be answered after it was asked for."""
KEPT_S: Final = ANSWERABLE_S + 3_600
"""For how long an answer is known: longer, by more than clocks of nodes differ."""

_log: Final = logging.getLogger("smg_node.history")


class HeldAnswers:
    """Approvals that one response answers.

    Once its generation has started, what has become of them is known from its events alone: a failure tells of every
    call that has begun before it. Where they end without a failure or an answer, any may have begun.
    """

    __slots__ = ("_access", "_begun", "_failed", "_ids", "_response_id", "_started", "_store")

    def __init__(
        self, store: HistoryStore, access: Access, ids: Sequence[str], response_id: str
    ) -> None:
        self._store: Final = store
        self._access: Final = access
        self._ids = tuple(ids)
        self._response_id: Final = response_id
        self._begun: set[str] = set()
        self._started = False
        self._failed = False

    def start(self) -> None:
        """Take that the generation starts: from now on calls may begin."""
        self._started = True

    def watch(self, events: Sequence[Event]) -> None:
        """Take the next events of the generation."""
        for event in events:
            if type(event) is BlockStart and event.owner is not None and event.owner.approval:
                self._begun.add(event.owner.approval)
            elif type(event) is Fail:
                self._failed = True

    def keep(self) -> None:
        """Keep all of them: the response answers them."""
        self._begun.update(self._ids)

    async def over(self) -> None:
        """Give back those whose calls have not begun, as far as the store can be reached. Raises nothing.

        May be called again after an interruption.
        """
        known = self._failed or not self._started
        for one in [one for one in self._ids if known and one not in self._begun]:
            try:
                await self._store.release_key(self._access, APPROVALS + one, self._response_id)
            except StoreError as error:
                _log.warning("the approval %s is not given back: %s", one, error.message)
        self._ids = ()


class ApprovalAnswers:
    """Reserves answers to approvals."""

    def __init__(self, store: HistoryStore, *, now_ms: Callable[[], int]) -> None:
        self._store: Final = store
        self._now_ms: Final = now_ms

    async def reserve(
        self,
        access: Access,
        answered: Sequence[ApprovedCall],
        said: Sequence[ItemDoc],
        response_id: str,
    ) -> HeldAnswers:
        """Reserve these answers for a response; `said` is the input in which they stand.

        AnsweredBeforeError where all of them were given before, with the response that did so; CONFLICT
        `approval_already_answered`; INVALID_REQUEST `approval_expired`; OVERLOADED `store_unavailable`.
        """
        for one in answered:
            self._check_age(one.approval)
        held = HeldAnswers(self._store, access, [one.approval for one in answered], response_id)
        taken: list[str] = []
        earlier: set[str] = set()
        try:
            for one in answered:
                # Noted before: who is cut while the store answers may have it reserved.
                taken.append(one.approval)
                found = await self._one(access, one, response_id)
                if found is not None:
                    taken.pop()
                    earlier.add(found)
            if earlier:
                raise await self._again(access, earlier, said, whole=not taken)
        except BaseException:
            await HeldAnswers(self._store, access, taken, response_id).over()
            raise
        return held

    async def _one(self, access: Access, one: ApprovedCall, response_id: str) -> str | None:
        """Return the response that gave this answer before, "" for one that is not stored; None where it is reserved now."""
        now_us = self._now_ms() * 1_000
        wanted = Idempotency(APPROVALS + one.approval, digest_of(one), now_us + KEPT_S * 1_000_000)
        with asking_store():
            found = await self._store.reserve_key(access, wanted, response_id, now_us=now_us)
        if found.state is KeyState.DIFFERENT:
            raise already_answered(one.approval)
        return found.response_id if found.state is KeyState.SAME else None

    async def _again(
        self, access: Access, earlier: set[str], said: Sequence[ItemDoc], *, whole: bool
    ) -> SmgError:
        """Return the error for answers that these responses gave before; `whole`: none is new."""
        response_id = min(earlier)
        if not whole or len(earlier) > 1:
            return already_answered()
        with asking_store():
            record = await self._store.get_response(access, response_id) if response_id else None
        if record is not None and record.status in ANSWERS:
            earlier_said = await paced(items_in_steps(record.input))
            if await paced(_beside(said)) != await paced(_beside(earlier_said)):
                # What is new in it would be lost if it were answered by the earlier response.
                return answered_beside(response_id)
            return AnsweredBeforeError(response_id)
        return already_answered(under_way=record is None or not record.status.is_final)

    def _check_age(self, approval: str) -> None:
        asked_ms = made_ms(approval)
        if asked_ms is not None and self._now_ms() - asked_ms > ANSWERABLE_S * 1_000:
            why = f"the request for approval {quoted(approval)} is older than a day; ask again"
            raise invalid(why, "input", "approval_expired")


def _beside(items: Sequence[ItemDoc]) -> Steps[list[dict[str, Any]]]:
    """Return what an input says beside its answers to approvals, after the requests for them, without ids; in steps."""
    beside: list[dict[str, Any]] = []
    for item in items:
        if item.type == "mcp_approval_request":
            beside.clear()
        elif item.type != "mcp_approval_response":
            values = item.values()
            beside.append({key: values[key] for key in values if key not in ("id", "status")})
        yield item.weight
    return beside


def digest_of(answer: ApprovedCall) -> bytes:
    """Return a digest of what is answered, and to what."""
    digest = blake2b(digest_size=DIGEST_BYTES, person=b"smg approvals")
    for part in (str(answer.approve), answer.server, answer.tool, answer.arguments):
        spelled = part.encode()
        # With its length before it, no part can be taken for the beginning of the next.
        digest.update(len(spelled).to_bytes(8, "big"))
        digest.update(spelled)
    return digest.digest()
