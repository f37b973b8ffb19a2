import asyncio
from threading import Thread

from smg_storage.connection_queue import Line, together
from smg_storage.records import PoolFigures


def counted(line: Line) -> tuple[int, int, int]:
    figures = line.figures()
    return figures.in_use, figures.waiting, figures.waits


def test_who_finds_a_connection_does_not_wait() -> None:
    line = Line(2)
    with line.place() as first, line.place() as second:
        first.served()
        second.served()
        assert counted(line) == (2, 0, 0)
    assert line.figures() == PoolFigures(size=2, in_use=0, waiting=0, waits=0, waited_s=0.0)


def test_who_comes_later_waits_until_it_is_served() -> None:
    line = Line(1)
    with line.place() as first:
        first.served()
        with line.place() as second:
            assert counted(line) == (1, 1, 1)
            assert line.figures().waited_s == 0.0
            second.served()
        assert counted(line) == (1, 0, 1)
        assert line.figures().waited_s > 0.0


async def test_who_gives_up_has_waited_too() -> None:
    line = Line(1)
    with line.place() as first:
        first.served()

        async def wait() -> None:
            with line.place():
                await asyncio.Event().wait()

        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(wait())
            await asyncio.sleep(0)
            assert counted(line) == (1, 1, 1)
            waiting.cancel()
        assert counted(line) == (1, 0, 1)
        assert line.figures().waited_s > 0.0


def test_a_thread_may_say_that_it_was_served() -> None:
    line = Line(1)
    with line.place() as first, line.place() as second:
        first.served()
        thread = Thread(target=second.served)
        thread.start()
        thread.join()
        served_by = line.figures()
    assert served_by.waits == 1
    assert line.figures().waited_s > 0.0


def test_two_pools_count_as_one() -> None:
    one = PoolFigures(size=1, in_use=1, waiting=3, waits=5, waited_s=0.5)
    other = PoolFigures(size=2, in_use=0, waiting=0, waits=1, waited_s=0.25)
    assert together(one, other) == PoolFigures(size=3, in_use=1, waiting=3, waits=6, waited_s=0.75)
