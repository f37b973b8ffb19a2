"""Event logs and keys: what a stream said, and what a request was."""

import asyncio

import pytest

from smg_storage.records import EventBlob, Idempotency, KeyState
from support.store_contract.stage import HOUR_S, Stage


def blobs(*numbers: tuple[int, int], payload: bytes = b"\x00\xff\n{}") -> list[EventBlob]:
    """Return blobs with these first and last numbers."""
    return [EventBlob(first, last, payload + b"%d" % first) for first, last in numbers]


class EventCases:
    async def read(
        self, stage: Stage, response_id: str, after: int = -1, limit: int = 99
    ) -> list[EventBlob]:
        found = await stage.store.read_events(stage.access, response_id, after=after, limit=limit)
        return list(found)

    async def append(self, stage: Stage, response_id: str, parts: list[EventBlob]) -> None:
        await stage.store.append_events(
            stage.access, response_id, parts, expires_us=stage.in_s(HOUR_S)
        )

    async def test_a_stream_that_nobody_kept_has_no_events(self, stage: Stage) -> None:
        assert await self.read(stage, stage.new_id("resp")) == []
        made = await stage.kept(stage.response())
        assert await self.read(stage, made.id) == []

    async def test_events_are_read_as_they_were_kept(self, stage: Stage) -> None:
        made = await stage.kept(stage.running())
        first, second = blobs((0, 3), (4, 4)), blobs((5, 11))
        await self.append(stage, made.id, first)
        await self.append(stage, made.id, second)
        assert await self.read(stage, made.id) == first + second
        found = await stage.other.read_events(stage.access, made.id, after=-1, limit=99)
        assert list(found) == first + second

    @pytest.mark.parametrize(
        ("after", "expected"),
        [
            (-1, [0, 4, 5]),
            (0, [0, 4, 5]),
            (2, [0, 4, 5]),
            (3, [4, 5]),
            (4, [5]),
            (11, []),
            (99, []),
        ],
    )
    async def test_events_are_read_after_any_number(
        self, stage: Stage, after: int, expected: list[int]
    ) -> None:
        made = await stage.kept(stage.running())
        await self.append(stage, made.id, blobs((0, 3), (4, 4), (5, 11)))
        assert [blob.first for blob in await self.read(stage, made.id, after)] == expected

    async def test_no_more_events_are_read_than_were_asked_for(self, stage: Stage) -> None:
        made = await stage.kept(stage.running())
        await self.append(stage, made.id, blobs(*((n, n) for n in range(20))))
        assert [blob.first for blob in await self.read(stage, made.id, 4, 3)] == [5, 6, 7]
        assert [blob.first for blob in await self.read(stage, made.id, 18, 3)] == [19]

    @pytest.mark.parametrize(
        ("bytes_max", "expected"), [(0, 1), (11, 1), (12, 2), (17, 2), (18, 3), (99, 3)]
    )
    async def test_no_more_bytes_are_read_than_were_asked_for(
        self, stage: Stage, bytes_max: int, expected: int
    ) -> None:
        made = await stage.kept(stage.running())
        parts = blobs((0, 0), (1, 1), (2, 9), payload=b"12345")
        await self.append(stage, made.id, parts)
        for after in (-1, 0):
            found = await stage.store.read_events(
                stage.access, made.id, after=after, limit=99, bytes_max=bytes_max
            )
            assert list(found) == parts[after + 1 :][:expected]

    async def test_long_parts_are_read_one_by_one(self, stage: Stage) -> None:
        made = await stage.kept(stage.running())
        parts = blobs((0, 0), (1, 1), (2, 2), (3, 3), payload=bytes(300_000))
        await self.append(stage, made.id, parts)
        read: list[EventBlob] = []
        while page := await stage.store.read_events(
            stage.access, made.id, after=len(read) - 1, limit=99, bytes_max=700_000
        ):
            assert len(page) == 2
            read += page
        assert read == parts

    async def test_events_that_are_there_stay(self, stage: Stage) -> None:
        made = await stage.kept(stage.running())
        kept = blobs((0, 3), (4, 6))
        await self.append(stage, made.id, kept)
        await self.append(stage, made.id, blobs((4, 6), (7, 7), payload=b"other"))
        assert await self.read(stage, made.id) == [*kept, *blobs((7, 7), payload=b"other")]

    async def test_events_kept_by_two_at_once_are_there_once(self, stage: Stage) -> None:
        made = await stage.kept(stage.running())
        parts = blobs(*((n, n) for n in range(10)))
        await asyncio.gather(
            *(
                store.append_events(stage.access, made.id, parts, expires_us=stage.in_s(HOUR_S))
                for store in (stage.store, stage.other) * 2
            )
        )
        assert await self.read(stage, made.id) == parts

    async def test_events_go_with_their_response(self, stage: Stage) -> None:
        made = await stage.kept(stage.response())
        other = await stage.kept(stage.response())
        for each in (made, other):
            await self.append(stage, each.id, blobs((0, 3)))
        await stage.store.delete_response(stage.access, made.id)
        assert await self.read(stage, made.id) == []
        assert await self.read(stage, other.id) == blobs((0, 3))

    async def test_events_are_over_before_their_response_is(self, stage: Stage) -> None:
        made = await stage.kept(stage.response())
        await self.append(stage, made.id, blobs((0, 3)))
        stage.clock.advance_s(HOUR_S)
        assert await self.read(stage, made.id) == []
        assert await stage.store.get_response(stage.access, made.id) is not None

    @pytest.mark.parametrize("purge", [False, True])
    async def test_a_log_is_over_as_one_and_may_begin_again(
        self, stage: Stage, purge: bool
    ) -> None:
        made = await stage.kept(stage.running())
        for number, hours in ((0, 1), (4, 9)):
            await stage.store.append_events(
                stage.access,
                made.id,
                blobs((number, number + 3)),
                expires_us=stage.in_s(hours * HOUR_S),
            )
        stage.clock.advance_s(HOUR_S - 1)
        assert await self.read(stage, made.id) == blobs((0, 3), (4, 7))
        stage.clock.advance_s(1)
        assert await self.read(stage, made.id) == []
        if purge:
            await stage.store.purge(now_us=stage.now_us, batch=1, timeout_s=30)
        assert await self.read(stage, made.id) == []
        await self.append(stage, made.id, blobs((0, 1), payload=b"anew"))
        assert await self.read(stage, made.id) == blobs((0, 1), payload=b"anew")
        stage.clock.advance_s(HOUR_S)
        assert await self.read(stage, made.id) == []


class KeyCases:
    async def reserve(
        self, stage: Stage, response_id: str, *, digest: bytes = b"d" * 16, key: str = "k"
    ) -> tuple[KeyState, str]:
        wanted = Idempotency(key, digest, stage.in_s(HOUR_S))
        answer = await stage.store.reserve_key(
            stage.access, wanted, response_id, now_us=stage.now_us
        )
        return answer.state, answer.response_id

    async def test_a_key_is_new_once(self, stage: Stage) -> None:
        made = stage.response()
        assert (await self.reserve(stage, made.id))[0] is KeyState.NEW
        assert await self.reserve(stage, stage.new_id("resp")) == (KeyState.SAME, "")
        await stage.kept(made)
        assert await self.reserve(stage, stage.new_id("resp")) == (KeyState.SAME, made.id)

    async def test_who_reserves_again_after_no_answer_is_told_the_same(self, stage: Stage) -> None:
        made = stage.response()
        for _ in range(2):
            assert (await self.reserve(stage, made.id))[0] is KeyState.NEW
        await stage.kept(made)
        assert await self.reserve(stage, made.id) == (KeyState.SAME, made.id)

    async def test_a_key_of_another_request_is_told_apart(self, stage: Stage) -> None:
        made = await stage.kept(stage.response())
        await self.reserve(stage, made.id)
        state, _ = await self.reserve(stage, stage.new_id("resp"), digest=bytes(range(16)))
        assert state is KeyState.DIFFERENT
        assert (await self.reserve(stage, stage.new_id("resp"))) == (KeyState.SAME, made.id)

    async def test_any_key_is_a_key(self, stage: Stage) -> None:
        made = await stage.kept(stage.response())
        keys = ["K", "k", "a:b {c}* ü", "x" * 128, "-"]
        for key in keys:
            assert (await self.reserve(stage, made.id, key=key))[0] is not KeyState.DIFFERENT
        for key in keys:
            again = await self.reserve(stage, stage.new_id("resp"), key=key)
            assert again == (KeyState.SAME, made.id)

    async def test_a_key_of_a_response_that_was_deleted_leads_nowhere(self, stage: Stage) -> None:
        made = stage.response()
        await self.reserve(stage, made.id)
        await stage.kept(made)
        await stage.store.delete_response(stage.access, made.id)
        assert await self.reserve(stage, stage.new_id("resp")) == (KeyState.SAME, "")

    async def test_a_key_that_was_given_back_is_new(self, stage: Stage) -> None:
        first, second = stage.response(), stage.response()
        assert (await self.reserve(stage, first.id))[0] is KeyState.NEW
        await stage.store.release_key(stage.access, "other", first.id)
        await stage.store.release_key(stage.access, "k", second.id)
        assert (await self.reserve(stage, second.id))[0] is KeyState.SAME
        for _ in range(2):
            await stage.other.release_key(stage.access, "k", first.id)
        other_digest = bytes(range(16))
        state, _ = await self.reserve(stage, second.id, digest=other_digest)
        assert state is KeyState.NEW
        await stage.store.release_key(stage.access, "k", first.id)
        assert (await self.reserve(stage, first.id))[0] is KeyState.DIFFERENT

    async def test_a_key_may_be_given_back_of_what_is_there(self, stage: Stage) -> None:
        made = await stage.kept(stage.response())
        await self.reserve(stage, made.id)
        await stage.store.release_key(stage.access, "k", made.id)
        assert (await self.reserve(stage, stage.new_id("resp")))[0] is KeyState.NEW
        assert await stage.store.get_response(stage.access, made.id) is not None

    async def test_a_key_that_is_over_is_new(self, stage: Stage) -> None:
        made = await stage.kept(stage.response())
        await self.reserve(stage, made.id)
        stage.clock.advance_s(HOUR_S)
        assert (await self.reserve(stage, stage.new_id("resp")))[0] is KeyState.NEW
        assert await self.reserve(stage, stage.new_id("resp")) == (KeyState.SAME, "")

    async def test_of_many_who_reserve_a_key_one_has_it(self, stage: Stage) -> None:
        wanted = Idempotency("k", b"d" * 16, stage.in_s(HOUR_S))
        answers = await asyncio.gather(
            *(
                store.reserve_key(stage.access, wanted, stage.new_id("resp"), now_us=stage.now_us)
                for store in (stage.store, stage.other) * 4
            )
        )
        states = [answer.state for answer in answers]
        assert states.count(KeyState.NEW) == 1
        assert states.count(KeyState.SAME) == 7
