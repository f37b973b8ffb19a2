import asyncio
import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from smg_node.history.spool.spool import Spool, SpoolError
from smg_node.history.spool.spool_folder import Place, SpoolFolder
from smg_storage.records import Idempotency, Item, Location, Side, Turn
from support.history.spools import ACCESS, TENANT, response_id, spool_at, turn


async def taken(spool: Spool) -> list[str]:
    """Everything that waits, in the order in which it is handed out."""
    found: list[str] = []
    for tag in spool.take(0.0, 100):
        found += [(await spool.load(one)).turn.response.id for one in spool.of(tag, 100)]
        spool.give_back(tag)
    return found


async def emptied(spool: Spool) -> None:
    for tag in spool.take(0.0, 100):
        await spool.done(spool.of(tag, 100))
        spool.give_back(tag)


async def test_a_turn_that_was_added_waits_until_it_is_done(tmp_path: Path) -> None:
    spool = spool_at(tmp_path)
    assert not spool.waits(TENANT, [response_id(1, 1)])
    await spool.add(ACCESS, turn(1, 1))
    assert spool.turns == 1
    assert spool.bytes > 0
    assert spool.waits(TENANT, [response_id(1, 1)])
    await emptied(spool)
    assert (spool.turns, spool.bytes, spool.spooled) == (0, 0, 1)
    assert not spool.waits(TENANT, [response_id(1, 1)])
    await spool.close()


async def test_all_of_a_thread_waits_and_nothing_of_others(tmp_path: Path) -> None:
    spool = spool_at(tmp_path)
    await spool.add(ACCESS, turn(1, 5))
    assert spool.waits(TENANT, [response_id(1, 1)])
    assert not spool.waits(TENANT, [response_id(2, 5)])
    assert not spool.waits("other", [response_id(1, 5)])
    assert spool.waits(TENANT, (), any_of_them=True)
    assert not spool.waits("other", (), any_of_them=True)
    await spool.close()


async def test_every_id_that_a_turn_writes_waits_with_it(tmp_path: Path) -> None:
    spool = spool_at(tmp_path)
    plain = turn(1, 1)
    whole = Turn(
        plain.response,
        items=[Item("msg_of_a_client", "message", b"{}", 1)],
        links=["msg_elsewhere"],
        locations=[Location("rs_9", plain.response.id, Side.OUTPUT, 0)],
        idempotency=Idempotency("k", bytes(16), 1),
    )
    await spool.add(ACCESS, whole)
    for one in ("msg_of_a_client", "msg_elsewhere", "rs_9", "key k"):
        assert spool.waits(TENANT, [one]), one
    await emptied(spool)
    for one in ("msg_of_a_client", "msg_elsewhere", "rs_9", "key k"):
        assert not spool.waits(TENANT, [one]), one
    await spool.close()


async def test_turns_come_back_in_the_order_of_their_thread(tmp_path: Path) -> None:
    spool = spool_at(tmp_path)
    for number in range(1, 4):
        for thread in (1, 2):
            await spool.add(ACCESS, turn(thread, number))
    assert await taken(spool) == [
        response_id(thread, number) for thread in (1, 2) for number in (1, 2, 3)
    ]
    await spool.close()


async def test_a_thread_that_is_taken_is_handed_out_once(tmp_path: Path) -> None:
    spool = spool_at(tmp_path)
    await spool.add(ACCESS, turn(1, 1))
    (tag,) = spool.take(0.0, 9)
    await spool.add(ACCESS, turn(1, 2))
    assert spool.take(0.0, 9) == []
    spool.give_back(tag, due_s=10.0)
    assert spool.take(9.9, 9) == []
    assert spool.next_s() == 10.0
    assert spool.take(10.0, 9) == [tag]
    await spool.close()


async def test_hurrying_waits_only_for_what_the_store_did_not_like(tmp_path: Path) -> None:
    spool = spool_at(tmp_path)
    await spool.add(ACCESS, turn(1, 1))
    await spool.add(ACCESS, turn(2, 1))
    one, two = spool.take(0.0, 9)
    spool.of(two, 1)[0].tries = 1
    spool.give_back(one, due_s=10.0)
    spool.give_back(two, due_s=10.0)
    spool.hurry()
    assert spool.take(0.0, 9) == [one]
    assert spool.next_s() == 10.0
    await spool.close()


async def test_the_next_process_takes_over_what_waits(tmp_path: Path) -> None:
    first = spool_at(tmp_path, "1")
    for number in range(1, 6):
        await first.add(ACCESS, turn(1, number))
    (tag,) = first.take(0.0, 9)
    await first.done(first.of(tag, 2))
    await first.close()
    second = spool_at(tmp_path, "2")
    assert await second.adopt() == 3
    assert await second.adopt() == 0
    await second.add(ACCESS, turn(1, 6))
    assert await taken(second) == [response_id(1, number) for number in (3, 4, 5, 6)]
    assert second.waits(TENANT, [response_id(1, 3)])
    await emptied(second)
    assert second.turns == 0
    await second.close()
    assert os.listdir(tmp_path) == []


async def test_what_a_living_process_has_is_left_alone(tmp_path: Path) -> None:
    first, second = spool_at(tmp_path, "1"), spool_at(tmp_path, "2")
    await first.add(ACCESS, turn())
    assert await second.adopt() == 0
    await first.close()
    assert await second.adopt() == 1
    await second.close()


async def test_no_more_turns_wait_than_may(tmp_path: Path) -> None:
    spool = spool_at(tmp_path, turns_max=3)
    results = await asyncio.gather(
        *(spool.add(ACCESS, turn(1, number)) for number in range(1, 6)), return_exceptions=True
    )
    assert [type(one) for one in results] == [type(None)] * 3 + [SpoolError] * 2
    assert spool.full
    assert spool.refused == 2
    await emptied(spool)
    assert not spool.full
    await spool.add(ACCESS, turn(1, 9))
    await spool.close()


async def test_no_more_bytes_wait_than_may(tmp_path: Path) -> None:
    spool = spool_at(tmp_path, bytes_max=4_000)
    results = await asyncio.gather(
        *(spool.add(ACCESS, turn(1, number, size=1_000)) for number in range(1, 6)),
        return_exceptions=True,
    )
    assert 0 < sum(isinstance(one, SpoolError) for one in results) < 5
    assert spool.bytes <= 4_000
    await spool.close()


class FailingDisk:
    """What a folder says while its disk is full."""

    def __call__(self, _: SpoolFolder, bodies: Sequence[bytes]) -> Sequence[Place]:
        raise OSError(errno.ENOSPC, "No space left on device")


async def test_a_disk_that_fails_is_said_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(SpoolFolder, "append", lambda *given: FailingDisk()(*given))
        spool = spool_at(tmp_path)
        with pytest.raises(SpoolError, match="no space left"):
            await spool.add(ACCESS, turn())
    assert (spool.turns, spool.refused) == (0, 1)
    await spool.close()


async def test_a_turn_whose_client_has_left_waits_like_any_other(tmp_path: Path) -> None:
    spool = spool_at(tmp_path)
    async with asyncio.TaskGroup() as group:
        adding = group.create_task(spool.add(ACCESS, turn(1, 1)))
        await asyncio.sleep(0)
        adding.cancel()
        await spool.add(ACCESS, turn(2, 1))
    assert adding.cancelled()
    assert sorted(await taken(spool)) == [response_id(1, 1), response_id(2, 1)]
    await spool.close()


async def test_many_turns_share_a_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups: list[int] = []
    real = SpoolFolder.append

    def counted(folder: SpoolFolder, bodies: Sequence[bytes]) -> Sequence[Place]:
        groups.append(len(bodies))
        return real(folder, bodies)

    monkeypatch.setattr(SpoolFolder, "append", counted)
    spool = spool_at(tmp_path)
    await asyncio.gather(*(spool.add(ACCESS, turn(number, 1)) for number in range(1, 65)))
    assert sum(groups) == 64
    assert len(groups) < 32
    await spool.close()


async def test_nothing_is_added_after_the_end(tmp_path: Path) -> None:
    spool = spool_at(tmp_path)
    await spool.close()
    with pytest.raises(SpoolError, match="this node ends"):
        await spool.add(ACCESS, turn())
