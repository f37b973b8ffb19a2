"""Runs: one owner at a time, whose token no later owner's is below."""

import asyncio

import msgspec
import pytest

from smg_storage.records import Lease, Patch, Status, StoredResponse, Turn
from support.store_contract.stage import CONFLICT, HOUR_S, LEASE_S, Stage, refused


class RunCases:
    async def kept_run(self, stage: Stage) -> StoredResponse:
        """Keep a run that nobody has."""
        return await stage.kept(stage.running())

    async def test_a_run_that_nobody_has_can_be_claimed(self, stage: Stage) -> None:
        running = await self.kept_run(stage)
        lease = await stage.claim(running)
        until_us = stage.in_s(LEASE_S)
        assert lease == Lease("acme", running.id, "node-a", token=1, until_us=until_us)
        kept = await stage.other.get_response(stage.access, running.id)
        assert kept is not None
        assert (kept.owner, kept.lease_token, kept.lease_until_us) == ("node-a", 1, until_us)
        assert kept.status is Status.QUEUED

    @pytest.mark.parametrize("owner", ["node-a", "node-b"])
    async def test_a_run_that_somebody_has_can_not(self, stage: Stage, owner: str) -> None:
        running = await self.kept_run(stage)
        await stage.claimed(running, "node-a")
        before = await stage.store.get_response(stage.access, running.id)
        stage.clock.advance_s(LEASE_S - 1)
        assert await stage.claim(running, owner) is None
        assert await stage.other.get_response(stage.access, running.id) == before

    async def test_a_run_whose_lease_is_over_can_be_claimed(self, stage: Stage) -> None:
        running = await self.kept_run(stage)
        first = await stage.claimed(running, "node-a")
        stage.clock.advance_s(LEASE_S)
        second = await stage.claimed(running, "node-b")
        assert (second.owner, second.token) == ("node-b", first.token + 1)

    async def test_what_is_final_or_not_there_can_not_be_claimed(self, stage: Stage) -> None:
        assert await stage.claim(stage.running()) is None
        for status in Status:
            if status.is_final:
                final = await stage.kept(stage.response(status=status, background=True))
                assert await stage.claim(final) is None

    async def test_of_many_who_claim_a_run_one_has_it(self, stage: Stage) -> None:
        running = await self.kept_run(stage)
        until_us = stage.in_s(LEASE_S)
        for round_number in range(1, 4):
            answers = await asyncio.gather(
                *(
                    (stage.store, stage.other)[number % 2].claim_run(
                        stage.access,
                        running.id,
                        f"node-{number}",
                        now_us=stage.now_us,
                        until_us=until_us,
                    )
                    for number in range(8)
                )
            )
            (lease,) = (answer for answer in answers if answer is not None)
            assert lease.token == round_number
            kept = await stage.store.get_response(stage.access, running.id)
            assert kept is not None
            assert (kept.owner, kept.lease_token) == (lease.owner, lease.token)
            await stage.store.release_run(stage.access, lease)

    async def test_the_loser_of_a_run_writes_nothing_more(self, stage: Stage) -> None:
        running = await self.kept_run(stage)
        lost = await stage.claimed(running, "node-a")
        stage.clock.advance_s(LEASE_S)
        won = await stage.claimed(running, "node-b")
        before = await stage.store.get_response(stage.access, running.id)
        with refused(CONFLICT):
            await stage.store.renew_run(stage.access, lost, until_us=stage.in_s(99))
        for token in (lost.token, 0, won.token + 1):
            with refused(CONFLICT):
                await stage.store.patch_response(
                    stage.access,
                    running.id,
                    Patch(status=Status.FAILED),
                    from_statuses=list(Status),
                    token=token,
                )
        done = msgspec.structs.replace(running, status=Status.COMPLETED)
        with refused(CONFLICT):
            await stage.other.commit_turn(stage.access, Turn(response=done, token=lost.token))
        await stage.store.release_run(stage.access, lost)
        assert await stage.store.get_response(stage.access, running.id) == before
        patched = await stage.store.patch_response(
            stage.access,
            running.id,
            Patch(status=Status.IN_PROGRESS),
            from_statuses=[Status.QUEUED],
            token=won.token,
        )
        assert patched is not None
        assert patched.status is Status.IN_PROGRESS

    async def test_the_owner_stays_the_owner(self, stage: Stage) -> None:
        running = await self.kept_run(stage)
        lease = await stage.claimed(running)
        for _ in range(3):
            stage.clock.advance_s(LEASE_S - 1)
            lease = await stage.other.renew_run(stage.access, lease, until_us=stage.in_s(LEASE_S))
            assert lease.until_us == stage.in_s(LEASE_S)
            assert (lease.token, lease.owner, lease.cancel_requested) == (1, "node-a", False)
            assert await stage.claim(running, "node-b") is None

    async def test_renewing_again_answers_the_same(self, stage: Stage) -> None:
        lease = await stage.claimed(await self.kept_run(stage))
        until_us = stage.in_s(99)
        renewed = await stage.store.renew_run(stage.access, lease, until_us=until_us)
        assert await stage.store.renew_run(stage.access, lease, until_us=until_us) == renewed

    async def test_a_run_that_is_not_there_is_not_renewed(self, stage: Stage) -> None:
        running = await self.kept_run(stage)
        lease = await stage.claimed(running)
        await stage.store.delete_response(stage.access, running.id)
        with refused(CONFLICT):
            await stage.store.renew_run(stage.access, lease, until_us=stage.in_s(99))
        await stage.store.release_run(stage.access, lease)
        assert await stage.store.get_response(stage.access, running.id) is None

    async def test_a_run_that_was_let_go_can_be_claimed_at_once(self, stage: Stage) -> None:
        running = await self.kept_run(stage)
        lease = await stage.claimed(running, "node-a")
        for _ in range(2):
            await stage.store.release_run(stage.access, lease)
        second = await stage.claimed(running, "node-b")
        assert second.token == lease.token + 1
        with refused(CONFLICT):
            await stage.store.renew_run(stage.access, lease, until_us=stage.in_s(99))

    # ── Cancelling ───────────────────────────────────────────────────────────

    async def test_the_owner_hears_that_somebody_wants_it_cancelled(self, stage: Stage) -> None:
        running = await self.kept_run(stage)
        lease = await stage.claimed(running)
        for _ in range(2):
            noted = await stage.other.request_cancel(stage.access, running.id)
            assert noted is not None
            assert (noted.cancel_requested, noted.status) == (True, Status.QUEUED)
        renewed = await stage.store.renew_run(stage.access, lease, until_us=stage.in_s(99))
        assert renewed.cancel_requested is True

    async def test_the_next_owner_hears_it_too(self, stage: Stage) -> None:
        running = await self.kept_run(stage)
        await stage.store.request_cancel(stage.access, running.id)
        assert (await stage.claimed(running)).cancel_requested is True

    async def test_what_is_final_is_not_cancelled(self, stage: Stage) -> None:
        final = await stage.kept(stage.response(background=True))
        before = await stage.store.get_response(stage.access, final.id)
        assert await stage.store.request_cancel(stage.access, final.id) == before
        assert await stage.store.get_response(stage.access, final.id) == before

    # ── Those without an owner ───────────────────────────────────────────────

    async def orphans(self, stage: Stage, limit: int = 99) -> list[Lease]:
        found = await stage.store.orphan_runs(now_us=stage.now_us, limit=limit, timeout_s=30)
        return list(found)

    async def test_a_run_whose_owner_is_gone_is_an_orphan(self, stage: Stage) -> None:
        running = await self.kept_run(stage)
        lease = await stage.claimed(running)
        assert await self.orphans(stage) == []
        stage.clock.advance_s(LEASE_S)
        assert await self.orphans(stage) == [lease]
        await stage.claimed(running, "node-b")
        assert await self.orphans(stage) == []

    async def test_a_run_that_nobody_ever_had_is_an_orphan(self, stage: Stage) -> None:
        never = await self.kept_run(stage)
        let_go = await self.kept_run(stage)
        await stage.store.release_run(stage.access, await stage.claimed(let_go))
        assert {lease.response_id for lease in await self.orphans(stage)} == {never.id, let_go.id}

    async def test_a_run_is_no_orphan_once_it_is_final(self, stage: Stage) -> None:
        committed, patched, gone = [await self.kept_run(stage) for _ in range(3)]
        done = msgspec.structs.replace(committed, status=Status.COMPLETED)
        await stage.store.commit_turn(stage.access, Turn(response=done))
        await stage.store.patch_response(
            stage.access,
            patched.id,
            Patch(status=Status.CANCELLED),
            from_statuses=[Status.QUEUED],
        )
        await stage.store.delete_response(stage.access, gone.id)
        assert await self.orphans(stage) == []

    async def test_what_is_not_in_the_background_is_no_orphan(self, stage: Stage) -> None:
        foreground = await stage.kept(stage.response(status=Status.IN_PROGRESS))
        await stage.claimed(foreground)
        stage.clock.advance_s(HOUR_S)
        assert await self.orphans(stage) == []

    async def test_orphans_of_all_tenants_come_oldest_first(self, stage: Stage) -> None:
        expected = []
        for number in range(6):
            access = (stage.access, stage.foreign)[number % 2]
            running = stage.running()
            await stage.store.store_response(access, running)
            until_us = stage.in_s(LEASE_S - number)
            lease = await stage.store.claim_run(
                access, running.id, "node-a", now_us=stage.now_us, until_us=until_us
            )
            assert lease is not None
            expected.append(lease)
        stage.clock.advance_s(LEASE_S)
        assert await self.orphans(stage) == expected[::-1]
        assert await self.orphans(stage, 2) == expected[:3:-1]

    async def test_a_turn_may_begin_a_run_under_a_lease(self, stage: Stage) -> None:
        until_us = stage.in_s(LEASE_S)
        begun = msgspec.structs.replace(
            stage.running(), owner="node-a", lease_token=1, lease_until_us=until_us
        )
        await stage.store.commit_turn(stage.access, Turn(response=begun))
        assert await stage.claim(begun, "node-b") is None
        lease = Lease("acme", begun.id, "node-a", token=1, until_us=until_us)
        renewed = await stage.store.renew_run(stage.access, lease, until_us=until_us + 1)
        assert renewed.until_us == until_us + 1
        stage.clock.advance_s(LEASE_S + 1)
        assert [found.response_id for found in await self.orphans(stage)] == [begun.id]
