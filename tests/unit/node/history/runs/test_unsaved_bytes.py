import asyncio

import pytest

from smg_node.history.runs.unsaved_bytes import UnsavedBytes


async def test_there_is_room_as_long_as_less_is_held_than_may_be() -> None:
    held = UnsavedBytes(100)
    held.add(99)
    await held.room()
    held.add(1)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(held.room())
        await asyncio.sleep(0)
        assert not waiting.done()
        held.remove(1)
    assert held.bytes == 99


async def test_what_was_never_held_cannot_be_given_back() -> None:
    with pytest.raises(AssertionError):
        UnsavedBytes(100).remove(1)
