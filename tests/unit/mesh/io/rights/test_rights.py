import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from smg_mesh.escrow.escrow_core import Escrow
from smg_mesh.escrow.limit_model import Life, Limit
from smg_mesh.escrow.messages.effects import Effect, Note, Send
from smg_mesh.io.counters import Counters
from smg_mesh.io.rights.rights import Rights
from support.mesh.mesh_cluster import until
from support.rights.escrow_world import Defined

KEY = "#requests/1000"
LIMIT = Limit(KEY, "requests", 1_000, 1_000, "strict", 0.5)


class Post:
    """Writes down what goes to whom."""

    def __init__(self) -> None:
        self.expect = 2
        self.sent: list[tuple[str, bytes]] = []

    def send_letter(self, name: str, content: bytes) -> None:
        self.sent.append((name, content))


class World:
    def __init__(
        self, *limits: Limit, post: Post | None = None, folder: Path | None = None
    ) -> None:
        self.limits = Defined(*limits)
        self.counters = Counters()
        self.post = post
        self.rights = Rights(
            "a",
            limits=self.limits,
            folder=folder,
            rng=random.Random(1),
            counters=self.counters,
            wall_ms=lambda: time.time_ns() // 1_000_000,
            monotonic_s=time.monotonic,
        )
        if post is not None:
            self.rights.connect(post)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Rights]:
        await self.rights.open(7)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.rights.run())
            try:
                yield self.rights
            finally:
                task.cancel()
                await self.rights.close()

    def term(self) -> int:
        self.rights.share(KEY)
        report = self.rights.report(KEY)
        return 0 if report is None else report.term


async def test_a_node_alone_owns_what_is_limited_and_spends_it() -> None:
    world = World(LIMIT)
    async with world.running() as rights:
        await until(world.term)
        await until(lambda: (share := rights.share(KEY)) is not None and share.left > 0)
        share = rights.share(KEY)
        assert share is not None
        assert share is rights.share(KEY)
        await until(lambda: share.state == "exact")
        (row, *_) = rights.rows()
        assert (row.key, row.name, row.boot) == (KEY, "a", 7)
    assert world.counters.get("rights_packets", "out") == 0


async def test_what_waits_for_rights_is_told_when_a_window_brings_some() -> None:
    world = World(LIMIT)
    async with world.running() as rights:
        await until(world.term)
        share = rights.share(KEY)
        assert share is not None

        def empty() -> None:
            share.spent += share.left
            share.offered += share.left
            share.left = 0

        empty()
        assert not await rights.refilled(share, 1_000_000, 0.05)
        assert share.wanted == 0
        empty()
        waiting = asyncio.gather(*(rights.refilled(share, 1, 30.0) for _ in range(3)))
        await asyncio.sleep(0)
        assert share.wanted >= 1
        # At most a second: nobody waits for longer, whatever was asked for, and a window is as long.
        heard = await waiting
        assert len(heard) == 3


async def test_a_limit_that_is_gone_has_no_share_and_changes_are_heard() -> None:
    world = World(LIMIT)
    async with world.running() as rights:
        await until(world.term)
        world.limits.limits = {}
        world.limits.version += 1
        rights.changed()
        assert rights.share(KEY) is None
        assert rights.report(KEY) is None


async def test_a_node_alone_has_no_core_before_the_first_limit_and_owns_it_then() -> None:
    world = World()
    async with world.running() as rights:
        assert rights._core is None
        rights.changed()
        assert rights._core is None
        assert (rights.share(KEY), rights.rows(), rights.report(KEY)) == (None, (), None)
        world.limits.limits = {KEY: LIMIT}
        rights.changed()
        await until(world.term)
        rights.change_boot(8)
        assert rights._core is not None
        assert rights._core.me.boot == 8


async def test_a_life_that_is_over_is_not_begun_by_a_limit() -> None:
    world = World()
    async with world.running() as rights:
        rights.step_down()
        world.limits.limits = {KEY: LIMIT}
        rights.changed()
        share = rights.share(KEY)
        assert rights._core is None
        assert share is not None
        assert share.left == 0


async def test_who_stepped_down_or_closed_has_no_rights() -> None:
    world = World(LIMIT)
    async with world.running() as rights:
        await until(world.term)
        share = rights.share(KEY)
        assert share is not None
        waiting = asyncio.gather(rights.refilled(share, 1 << 40, 30.0))
        await asyncio.sleep(0)
        rights.step_down()
        assert not any(await waiting)
        assert (share.left, share.window) == (0, -1)
        nothing = rights.share(KEY)
        assert nothing is not None
        assert (nothing.left, nothing.window) == (0, -1)
        assert rights.share("unlimited") is None
        assert rights.rows() == ()
        assert not await rights.refilled(share, 1, 30.0)
        rights.hear(b"", "b")
        rights.members([Life("a", 7)], [])
        rights.changed()


async def test_another_boot_is_another_life_with_none_of_the_rights_before() -> None:
    world = World(LIMIT)
    async with world.running() as rights:
        await until(world.term)
        share = rights.share(KEY)
        assert share is not None
        rights.change_boot(7)
        assert rights.share(KEY) is share
        rights.change_boot(8)
        assert (share.left, share.window) == (0, -1)
        again = rights.share(KEY)
        assert again is not None
        assert again.left == 0
        assert {row.boot for row in rights.rows()} == {8}
        report = rights.report(KEY)
        assert report is not None
        assert report.roster == ("a",)


async def test_without_limits_there_is_no_wake_up() -> None:
    world = World(post=Post())
    async with world.running() as rights:
        assert rights.share(KEY) is None
        assert rights._pulse._handle is None
        rights.members([Life("a", 7), Life("b", 8)], [])
        assert rights._pulse._handle is None


async def test_what_a_node_keeps_is_there_in_its_next_life(tmp_path: Path) -> None:
    minute = Limit("#requests/60000", "requests", 600, 60_000, "strict", 0.5)
    for life in range(2):
        world = World(minute, folder=tmp_path)
        async with world.running() as rights:

            def owns(rights: Rights = rights) -> bool:
                rights.share(minute.key)
                report = rights.report(minute.key)
                return report is not None and report.term > 0

            await until(owns)
            # The next life has nothing to add: what it may give was minted by this one.
            if life == 0:
                await until(lambda: (tmp_path / "minted.log").stat().st_size)
    assert (tmp_path / "roster.json").exists()
    assert (tmp_path / "minted.log").stat().st_size > 0


async def test_letters_go_out_and_come_in_and_a_mistake_about_one_costs_only_that_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    post = Post()
    world = World(post=post)

    def handle(
        _self: Escrow, data: bytes, sender: str, *, now_ms: int, wall_ms: int
    ) -> Sequence[Effect]:
        if data == b"broken":
            raise ZeroDivisionError
        return [Send(sender, data[::-1]), Note("rights_refused", detail="wire")]

    monkeypatch.setattr(Escrow, "handle", handle)
    async with world.running() as rights:
        rights.hear(b"broken", "b")
        rights.hear(b"123", "b")
    assert post.sent == [("b", b"321")]
    assert world.counters.get("rights_packets", "in") == 2
    assert world.counters.get("rights_packets", "out") == 1
    assert world.counters.get("rights_refused", "wire") == 1
    assert world.counters.get("state_fault") == 1
    assert "ZeroDivisionError" in caplog.text


async def test_a_life_in_the_same_process_goes_on_with_what_is_open() -> None:
    key = "#concurrent/0"
    world = World(Limit(key, "concurrent", 5, 0, "strict"))
    async with world.running() as rights:
        await until(lambda: (share := rights.share(key)) is not None and share.left == 5)
        share = rights.share(key)
        assert share is not None
        share.left -= 3
        share.spent += 3
        rights.change_boot(8)
        await until(lambda: (share := rights.share(key)) is not None and share.left > 0)
        assert rights.share(key) is share
        assert (share.left, share.spent, share.window) == (2, 3, 0)
        share.left += 3
        share.spent -= 3
        assert share.left == 5


async def test_open_requests_hear_of_a_limit_that_was_lowered_at_once() -> None:
    key = "#concurrent/0"
    world = World(Limit(key, "concurrent", 5, 0, "strict"))
    async with world.running() as rights:
        await until(lambda: (share := rights.share(key)) is not None and share.left == 5)
        share = rights.share(key)
        assert share is not None
        share.left -= 3
        share.spent += 3
        world.limits.limits[key] = Limit(key, "concurrent", 2, 0, "strict", version=1)
        world.limits.version += 1
        rights.changed()
        assert share.left == -1


async def test_a_later_life_finds_on_disk_how_far_the_clock_of_this_one_was(tmp_path: Path) -> None:
    began_ms = time.time_ns() // 1_000_000
    first = World(LIMIT, folder=tmp_path / "rights")
    async with first.running() as rights:
        await until(lambda: (core := rights._core) is not None and core.lived.known)
    later = World(LIMIT, folder=tmp_path / "rights")
    async with later.running() as rights:
        core = rights._core
        assert core is not None
        assert core.lived.until_ms(began_ms) > began_ms
        assert not any(key.startswith("!lived") for key, _ in core._voter.records._records)
