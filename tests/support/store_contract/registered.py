"""Runs that begin with an owner: their rows, their logs, their ends, and who takes them over."""

import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from smg_storage.errors import StoreError
from smg_storage.records import (
    EventBlob,
    Idempotency,
    Lease,
    Location,
    Side,
    Status,
    StoredResponse,
    Turn,
)
from support.store_contract.logs import blobs
from support.store_contract.stage import CONFLICT, HOUR_S, LEASE_S, Stage, ids, refused

OWNER = "node-a/5eed5eed"
OTHER = "node-b/0ff0ff00"


def begun(
    stage: Stage, *, status: Status = Status.QUEUED, conversation_id: str = ""
) -> StoredResponse:
    """Return a run that somebody has from its beginning; what it is to answer is not known yet."""
    return msgspec.structs.replace(
        stage.response(status=status, background=True, conversation_id=conversation_id),
        response=b'{"output":[]}',
        owner=OWNER,
        lease_token=1,
        lease_until_us=stage.in_s(LEASE_S),
    )


def lease_of(record: StoredResponse) -> Lease:
    """Return the lease that it began with."""
    return Lease("acme", record.id, record.owner, record.lease_token, record.lease_until_us)


def ended(stage: Stage, record: StoredResponse, *, token: int = 1) -> Turn:
    """Return what such a run leaves behind at its end."""
    answer = stage.item("the answer", response_id=record.id)
    done = msgspec.structs.replace(
        record,
        status=Status.COMPLETED,
        response=b'{"output":[' + answer.document + b"]}",
        completed_us=stage.now_us,
    )
    if record.conversation_id:
        return Turn(response=done, items=[answer], links=[answer.id], token=token)
    place = Location(answer.id, record.id, Side.OUTPUT, 0)
    return Turn(response=done, locations=[place], token=token)


class RegisteredCases:
    async def say(
        self, stage: Stage, response_id: str, parts: Sequence[EventBlob], token: int
    ) -> None:
        await stage.store.append_events(
            stage.access, response_id, parts, expires_us=stage.in_s(HOUR_S), token=token
        )

    async def logged(self, stage: Stage, response_id: str) -> list[EventBlob]:
        return list(await stage.other.read_events(stage.access, response_id, after=-1, limit=99))

    async def taken_over(self, stage: Stage, record: StoredResponse) -> Lease:
        """Let another one have it before its lease is over."""
        lease = await stage.other.claim_run(
            stage.access,
            record.id,
            OTHER,
            now_us=record.lease_until_us,
            until_us=record.lease_until_us + 1,
        )
        assert lease is not None
        return lease

    # ── The row ──────────────────────────────────────────────────────────────

    @pytest.mark.parametrize("status", [Status.QUEUED, Status.IN_PROGRESS])
    async def test_a_run_may_begin_with_an_owner(self, stage: Stage, status: Status) -> None:
        made = await stage.kept(begun(stage, status=status))
        read = await stage.other.get_response(stage.access, made.id)
        assert read == made
        assert await stage.claim(made, OTHER) is None
        renewed = await stage.store.renew_run(stage.access, lease_of(made), until_us=stage.in_s(99))
        assert (renewed.token, renewed.until_us) == (1, stage.in_s(99))

    async def test_it_ends_in_the_place_of_the_row_that_it_began_with(self, stage: Stage) -> None:
        conversation_id = await stage.new_conversation()
        (before,) = await stage.append(conversation_id, 1)
        made = await stage.kept(begun(stage, conversation_id=conversation_id))
        turn = ended(stage, made)
        committed = await stage.store.commit_turn(stage.access, turn)
        assert (len(committed.positions), committed.again) == (1, False)
        read = await stage.other.get_response(stage.access, made.id)
        assert read is not None
        assert (read.status, read.input) == (Status.COMPLETED, made.input)
        assert (read.response, read.completed_us) == (turn.response.response, stage.now_us)
        assert await stage.listed(conversation_id) == [before.id, turn.links[0]]
        again = await stage.other.commit_turn(stage.access, turn)
        assert (list(again.positions), again.again) == (list(committed.positions), True)

    async def test_its_items_are_found_once_it_has_ended(self, stage: Stage) -> None:
        made = await stage.kept(begun(stage))
        turn = ended(stage, made)
        (place,) = turn.locations
        assert await stage.store.get_item(stage.access, place.item_id) is None
        await stage.store.commit_turn(stage.access, turn)
        item = await stage.other.get_item(stage.access, place.item_id)
        assert item is not None
        assert b"the answer" in item.document

    async def test_nobody_has_it_once_it_has_ended(self, stage: Stage) -> None:
        made = await stage.kept(begun(stage))
        await stage.store.commit_turn(stage.access, ended(stage, made))
        read = await stage.store.get_response(stage.access, made.id)
        with refused(CONFLICT):
            await stage.store.renew_run(stage.access, lease_of(made), until_us=stage.in_s(99))
        await stage.store.release_run(stage.access, lease_of(made))
        stage.clock.advance_s(HOUR_S)
        assert await stage.claim(made, OTHER) is None
        found = await stage.store.orphan_runs(now_us=stage.now_us, limit=9, timeout_s=30)
        assert list(found) == []
        assert await stage.store.get_response(stage.access, made.id) == read

    # ── The log ──────────────────────────────────────────────────────────────

    async def test_who_has_it_keeps_what_it_says(self, stage: Stage) -> None:
        made = await stage.kept(begun(stage))
        parts = blobs((0, 3), (4, 4), (5, 9))
        await self.say(stage, made.id, parts[:1], token=1)
        await self.say(stage, made.id, parts[1:], token=1)
        assert await self.logged(stage, made.id) == parts
        await self.say(stage, made.id, [], token=1)
        await stage.store.commit_turn(stage.access, ended(stage, made))
        assert await self.logged(stage, made.id) == parts

    async def test_what_is_in_a_log_stays_whoever_comes(self, stage: Stage) -> None:
        made = await stage.kept(begun(stage))
        kept = blobs((0, 3), (4, 6))
        await self.say(stage, made.id, kept, token=1)
        await self.say(stage, made.id, kept, token=1)
        lease = await self.taken_over(stage, made)
        late = blobs((4, 5), (7, 7), payload=b"other")
        await self.say(stage, made.id, late, token=lease.token)
        assert await self.logged(stage, made.id) == [*kept, late[1]]

    @pytest.mark.parametrize("token", [1, 3, 99])
    async def test_who_does_not_have_it_keeps_nothing(self, stage: Stage, token: int) -> None:
        made = await stage.kept(begun(stage))
        kept = blobs((0, 3))
        await self.say(stage, made.id, kept, token=1)
        await self.taken_over(stage, made)
        for parts in (blobs((4, 6)), blobs((0, 3)), []):
            with refused(CONFLICT):
                await self.say(stage, made.id, parts, token=token)
        assert await self.logged(stage, made.id) == kept
        await self.say(stage, made.id, blobs((4, 6)), token=2)
        assert await self.logged(stage, made.id) == [*kept, *blobs((4, 6))]

    async def test_nothing_is_said_after_the_end(self, stage: Stage) -> None:
        made = await stage.kept(begun(stage))
        kept = blobs((0, 3))
        await self.say(stage, made.id, kept, token=1)
        await stage.store.commit_turn(stage.access, ended(stage, made))
        for parts in (blobs((4, 6)), kept):
            with refused(CONFLICT):
                await self.say(stage, made.id, parts, token=1)
        assert await self.logged(stage, made.id) == kept

    async def test_nothing_is_said_for_what_is_not_there(self, stage: Stage) -> None:
        never = begun(stage)
        with refused(CONFLICT):
            await self.say(stage, never.id, blobs((0, 3)), token=1)
        deleted = await stage.kept(begun(stage))
        await self.say(stage, deleted.id, blobs((0, 3)), token=1)
        await stage.store.delete_response(stage.access, deleted.id)
        with refused(CONFLICT):
            await self.say(stage, deleted.id, blobs((4, 6)), token=1)
        over = msgspec.structs.replace(begun(stage), expires_us=stage.in_s(HOUR_S))
        await stage.kept(over)
        stage.clock.advance_s(HOUR_S)
        with refused(CONFLICT):
            await self.say(stage, over.id, blobs((0, 3)), token=1)
        for each in (never, deleted, over):
            assert await self.logged(stage, each.id) == []

    async def test_what_began_without_an_owner_has_no_token_yet(self, stage: Stage) -> None:
        made = await stage.kept(stage.running())
        with refused(CONFLICT):
            await self.say(stage, made.id, blobs((0, 3)), token=1)
        lease = await stage.claimed(made)
        await self.say(stage, made.id, blobs((0, 3)), token=lease.token)
        assert await self.logged(stage, made.id) == blobs((0, 3))

    async def test_once_it_is_taken_over_its_log_is_the_next_ones(self, stage: Stage) -> None:
        made = await stage.kept(begun(stage))
        said = 0
        enough = asyncio.Event()

        async def go_on() -> None:
            nonlocal said
            while True:
                await self.say(stage, made.id, blobs((said, said)), token=1)
                said += 1
                if said == 3:
                    enough.set()
                await asyncio.sleep(0)

        async def take_over() -> list[EventBlob]:
            await enough.wait()
            await self.taken_over(stage, made)
            return await self.logged(stage, made.id)

        async with asyncio.timeout(60):
            lost, seen = await asyncio.gather(go_on(), take_over(), return_exceptions=True)
        assert isinstance(lost, StoreError)
        assert lost.kind is CONFLICT
        assert await self.logged(stage, made.id) == seen
        assert seen == blobs(*((n, n) for n in range(said)))

    # ── Taking over ──────────────────────────────────────────────────────────

    async def test_it_can_be_taken_over_before_its_lease_is_over(self, stage: Stage) -> None:
        made = await stage.kept(begun(stage))
        until_us = made.lease_until_us
        early = await stage.store.claim_run(
            stage.access, made.id, OTHER, now_us=until_us - 1, until_us=until_us + 9
        )
        assert early is None
        lease = await stage.store.claim_run(
            stage.access, made.id, OTHER, now_us=until_us, until_us=until_us + 9
        )
        assert lease == Lease("acme", made.id, OTHER, token=2, until_us=until_us + 9)
        with refused(CONFLICT):
            await stage.store.renew_run(stage.access, lease_of(made), until_us=until_us + 99)
        with refused(CONFLICT):
            await stage.store.commit_turn(stage.access, ended(stage, made, token=1))
        await stage.store.release_run(stage.access, lease_of(made))
        await stage.store.commit_turn(stage.access, ended(stage, made, token=2))
        read = await stage.store.get_response(stage.access, made.id)
        assert read is not None
        assert (read.status, read.owner) == (Status.COMPLETED, OTHER)

    async def test_of_those_who_take_it_over_one_has_it(self, stage: Stage) -> None:
        made = await stage.kept(begun(stage))
        until_us = made.lease_until_us
        answers = await asyncio.gather(
            *(
                (stage.store, stage.other)[number % 2].claim_run(
                    stage.access,
                    made.id,
                    f"node-{number}/0",
                    now_us=until_us,
                    until_us=until_us + 1,
                )
                for number in range(6)
            )
        )
        assert [lease.token for lease in answers if lease is not None] == [2]

    async def test_those_that_will_be_orphans_are_known_before(self, stage: Stage) -> None:
        made = [await stage.kept(begun(stage)) for _ in range(3)]
        stage.clock.advance_s(5)
        # Two of them have somebody who goes on.
        for each in made[:2]:
            await stage.store.renew_run(stage.access, lease_of(each), until_us=stage.in_s(LEASE_S))

        async def will_be(at_us: int, limit: int = 99) -> list[str]:
            found = await stage.other.orphan_runs(now_us=at_us, limit=limit, timeout_s=30)
            return [lease.response_id for lease in found]

        assert await will_be(stage.now_us) == []
        assert await will_be(stage.in_s(LEASE_S - 5)) == [made[2].id]
        later_us = stage.in_s(LEASE_S)
        assert await will_be(later_us, limit=1) == [made[2].id]
        assert sorted(await will_be(later_us)) == sorted(ids(made))
        assert (await will_be(later_us))[0] == made[2].id
        await self.taken_over(stage, made[2])
        assert sorted(await will_be(stage.in_s(LEASE_S))) == sorted(ids(made))
        assert await will_be(stage.in_s(LEASE_S - 5)) == []

    # ── A key of the client's choice ─────────────────────────────────────────

    async def test_a_key_may_be_reserved_before_and_stand_for_it_later(self, stage: Stage) -> None:
        made = begun(stage)
        key = Idempotency("k", b"d" * 16, stage.in_s(HOUR_S))
        await stage.store.reserve_key(stage.access, key, made.id, now_us=stage.now_us)
        await stage.kept(made)
        turn = msgspec.structs.replace(ended(stage, made), idempotency=key)
        assert (await stage.store.commit_turn(stage.access, turn)).again is False
        told = await stage.other.reserve_key(
            stage.access, key, stage.new_id("resp"), now_us=stage.now_us
        )
        assert told.response_id == made.id
