"""Responses by themselves: kept once, changed until they are final, listed by person, forgotten."""

import asyncio

import msgspec
import pytest

from smg_storage.errors import StoreError
from smg_storage.records import PageAsk, Patch, Status, StoredResponse
from support.store_contract.stage import (
    BAD_REFERENCE,
    CONFLICT,
    HOUR_S,
    Stage,
    ids,
    refused,
    unversioned,
)

_FINAL = [status for status in Status if status.is_final]
_OPEN = [status for status in Status if not status.is_final]


class ResponseCases:
    async def test_a_response_that_nobody_kept_is_not_there(self, stage: Stage) -> None:
        unknown = stage.new_id("resp")
        assert await stage.store.get_response(stage.access, unknown) is None
        assert await stage.store.delete_response(stage.access, unknown) is False
        assert await stage.store.request_cancel(stage.access, unknown) is None

    async def test_a_response_is_read_as_it_was_kept(self, stage: Stage) -> None:
        plain = await stage.kept(stage.response())
        full = await stage.kept(
            msgspec.structs.replace(
                stage.response(previous=plain, background=True, identifier="person ü:*{1}"),
                model="org/模型-70B",
                completed_us=stage.now_us + 1,
                expires_us=stage.in_s(HOUR_S),
                owner="node-a",
                lease_token=3,
                lease_until_us=stage.in_s(HOUR_S) + 1,
                cancel_requested=True,
            )
        )
        for made in (plain, full):
            assert unversioned(await stage.store.get_response(stage.access, made.id)) == made
            assert unversioned(await stage.other.get_response(stage.access, made.id)) == made

    @pytest.mark.parametrize("status", Status)
    async def test_a_response_of_any_status_is_kept(self, stage: Stage, status: Status) -> None:
        made = await stage.kept(stage.response(status=status))
        assert unversioned(await stage.store.get_response(stage.access, made.id)) == made

    async def test_keeping_it_again_changes_nothing(self, stage: Stage) -> None:
        made = await stage.kept(stage.response())
        before = await stage.store.get_response(stage.access, made.id)
        assert await stage.other.store_response(stage.access, made) == made.id
        assert await stage.store.get_response(stage.access, made.id) == before

    async def test_keeping_another_one_of_that_id_is_a_conflict(self, stage: Stage) -> None:
        made = await stage.kept(stage.response())
        for other in (
            msgspec.structs.replace(made, response=b'{"output":[]}'),
            msgspec.structs.replace(made, input=b"[]"),
            msgspec.structs.replace(made, status=Status.FAILED),
            msgspec.structs.replace(made, model="another"),
            msgspec.structs.replace(made, previous_response_id=stage.new_id("resp")),
        ):
            with refused(CONFLICT):
                await stage.store.store_response(stage.access, other)
        assert unversioned(await stage.store.get_response(stage.access, made.id)) == made

    async def test_a_response_can_be_forgotten_once(self, stage: Stage) -> None:
        made = await stage.kept(stage.response(identifier="p"))
        assert await stage.store.delete_response(stage.access, made.id) is True
        assert await stage.other.get_response(stage.access, made.id) is None
        assert await stage.store.delete_response(stage.access, made.id) is False
        page = await stage.store.list_identifier_responses(stage.access, "p", PageAsk())
        assert list(page.responses) == []

    # ── Changes until it is final ────────────────────────────────────────────

    async def test_a_patch_changes_what_it_names(self, stage: Stage) -> None:
        made = await stage.kept(stage.response(status=Status.QUEUED))
        started = await stage.store.patch_response(
            stage.access, made.id, Patch(status=Status.IN_PROGRESS), from_statuses=[Status.QUEUED]
        )
        assert unversioned(started) == msgspec.structs.replace(made, status=Status.IN_PROGRESS)
        patch = Patch(
            status=Status.FAILED,
            response=b'{"error":{}}',
            completed_us=stage.now_us + 5,
            expires_us=stage.in_s(HOUR_S),
        )
        ended = await stage.other.patch_response(stage.access, made.id, patch, from_statuses=_OPEN)
        assert unversioned(ended) == msgspec.structs.replace(
            made,
            status=Status.FAILED,
            response=b'{"error":{}}',
            completed_us=stage.now_us + 5,
            expires_us=stage.in_s(HOUR_S),
        )
        assert await stage.store.get_response(stage.access, made.id) == ended
        assert started is not None
        assert ended is not None
        assert started.version < ended.version

    async def test_a_patch_of_what_is_not_there_is_none(self, stage: Stage) -> None:
        assert (
            await stage.store.patch_response(
                stage.access, stage.new_id("resp"), Patch(status=Status.FAILED), from_statuses=_OPEN
            )
            is None
        )

    async def test_a_patch_from_another_status_is_a_conflict(self, stage: Stage) -> None:
        made = await stage.kept(stage.response(status=Status.IN_PROGRESS))
        with refused(CONFLICT):
            await stage.store.patch_response(
                stage.access, made.id, Patch(status=Status.FAILED), from_statuses=[Status.QUEUED]
            )
        assert unversioned(await stage.store.get_response(stage.access, made.id)) == made

    @pytest.mark.parametrize("status", _FINAL)
    async def test_what_is_final_stays(self, stage: Stage, status: Status) -> None:
        made = await stage.kept(stage.response(status=status))
        wanted = Status.CANCELLED if status is not Status.CANCELLED else Status.COMPLETED
        for patch in (Patch(status=wanted), Patch(status=status, response=b"{}")):
            with refused(CONFLICT):
                await stage.store.patch_response(
                    stage.access, made.id, patch, from_statuses=list(Status)
                )
        assert unversioned(await stage.store.get_response(stage.access, made.id)) == made

    async def test_a_patch_that_was_done_already_answers_the_same(self, stage: Stage) -> None:
        made = await stage.kept(stage.response(status=Status.QUEUED))
        patch = Patch(status=Status.COMPLETED, response=b"{}", completed_us=stage.now_us)
        done = await stage.store.patch_response(stage.access, made.id, patch, from_statuses=_OPEN)
        again = await stage.other.patch_response(stage.access, made.id, patch, from_statuses=_OPEN)
        assert again == done

    async def test_of_cancelling_and_completing_one_happens(self, stage: Stage) -> None:
        for _ in range(4):
            made = await stage.kept(stage.response(status=Status.IN_PROGRESS))
            outcomes = await asyncio.gather(
                *(
                    store.patch_response(
                        stage.access, made.id, Patch(status=status), from_statuses=_OPEN
                    )
                    for store, status in (
                        (stage.store, Status.COMPLETED),
                        (stage.other, Status.CANCELLED),
                        (stage.store, Status.FAILED),
                    )
                ),
                return_exceptions=True,
            )
            (won,) = (outcome for outcome in outcomes if isinstance(outcome, StoredResponse))
            lost = [outcome for outcome in outcomes if isinstance(outcome, StoreError)]
            assert [error.kind for error in lost] == [CONFLICT] * 2
            assert await stage.store.get_response(stage.access, made.id) == won


class IdentifierCases:
    async def listed(
        self, stage: Stage, identifier: str, limit: int, *, newest_first: bool
    ) -> list[str]:
        found: list[str] = []
        after = ""
        while True:
            page = await stage.store.list_identifier_responses(
                stage.access,
                identifier,
                PageAsk(limit=limit, after=after, newest_first=newest_first),
            )
            assert len(page.responses) <= limit
            found += ids(page.responses)
            if not page.has_more:
                return found
            after = found[-1]

    async def keep(self, stage: Stage, identifier: str, count: int) -> list[str]:
        made = []
        for number in range(count):
            if number % 2:  # two at a time have the same time, and each pair is a thread
                stage.clock.advance_s(1)
                stage.begin_thread()
            made.append(await stage.kept(stage.response(identifier=identifier)))
        return ids(sorted(made, key=lambda record: (record.created_us, record.id)))

    @pytest.mark.parametrize("limit", [1, 3, 100])
    async def test_a_persons_responses_are_listed_by_time(self, stage: Stage, limit: int) -> None:
        made = await self.keep(stage, "person:1 {ü}*", 7)
        await self.keep(stage, "person:2", 3)
        await stage.kept(stage.response())
        listed = await self.listed(stage, "person:1 {ü}*", limit, newest_first=False)
        assert listed == made
        listed = await self.listed(stage, "person:1 {ü}*", limit, newest_first=True)
        assert listed == made[::-1]

    async def test_a_person_nobody_knows_has_none(self, stage: Stage) -> None:
        page = await stage.store.list_identifier_responses(stage.access, "nobody", PageAsk())
        assert (list(page.responses), page.has_more) == ([], False)
        assert await stage.store.delete_identifier_responses(stage.access, "nobody") == 0

    async def test_a_page_after_somebody_elses_response_is_refused(self, stage: Stage) -> None:
        await self.keep(stage, "one", 2)
        (other,) = await self.keep(stage, "two", 1)
        for after in (other, stage.new_id("resp")):
            with refused(BAD_REFERENCE, missing=after):
                await stage.store.list_identifier_responses(
                    stage.access, "one", PageAsk(after=after)
                )

    async def test_a_person_can_be_forgotten(self, stage: Stage) -> None:
        gone = await self.keep(stage, "one", 5)
        (left,) = await self.keep(stage, "two", 1)
        assert await stage.store.delete_identifier_responses(stage.access, "one") == 5
        for each in gone:
            assert await stage.other.get_response(stage.access, each) is None
        assert await self.listed(stage, "one", 9, newest_first=True) == []
        assert await self.listed(stage, "two", 9, newest_first=True) == [left]
        assert await stage.other.delete_identifier_responses(stage.access, "one") == 0

    async def test_a_turn_is_listed_like_any_other(self, stage: Stage) -> None:
        turn = stage.turn(items=0)
        response = msgspec.structs.replace(turn.response, safety_identifier="p")
        await stage.store.commit_turn(
            stage.access, msgspec.structs.replace(turn, response=response)
        )
        assert await self.listed(stage, "p", 9, newest_first=True) == [response.id]
