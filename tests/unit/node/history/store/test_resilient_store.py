import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from msgspec import structs

from smg_node.history.ports import Kept
from smg_node.history.store import resilient_store as module
from smg_node.history.store.resilient_store import ResilientStore
from smg_node.history.store.store_health import StoreHealth
from smg_storage.errors import OldTablesError, StoreError, StoreErrorKind
from smg_storage.records import Access, Conversation, Idempotency, KeyState
from smg_storage.store import HistoryStore
from support.history.spools import ACCESS, MoodyStore, in_order, response_id, spool_at, turn
from support.http.raw_http import until


class World:
    """A keeping over a moody store, on a clock that a test moves."""

    def __init__(self, root: Path, *, strict: bool = False, turns_max: int = 100) -> None:
        self.store = MoodyStore()
        self.refusal: Exception | None = None
        self.seen: Counter[tuple[str, str]] = Counter()
        self.now_s = 0.0
        self.spool = spool_at(root, turns_max=turns_max)
        self.health = StoreHealth(
            now_s=lambda: self.now_s,
            rng=random.Random(1),
            slow_s=1.0,
            changed=lambda: self.keeping.store_changed(),
        )
        self.keeping = ResilientStore(
            self._open,
            kind="memory",
            health=self.health,
            spool=self.spool,
            strict=strict,
            now_s=lambda: self.now_s,
            observe=self._observe,
            wait_s=5.0,
        )

    def _open(self) -> HistoryStore:
        if self.refusal is not None:
            raise self.refusal
        return self.store

    def _observe(self, operation: str, outcome: str, _: float) -> None:
        self.seen[operation, outcome] += 1

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.keeping.run())
            try:
                yield
            finally:
                task.cancel()
        await self.keeping.close()

    async def tripped(self) -> None:
        """Let the breaker open."""
        self.store.away = True
        for _ in range(5):
            with refused():
                await self.keeping.get_response(ACCESS, response_id(9, 1))


@contextmanager
def refused(kind: StoreErrorKind = StoreErrorKind.UNAVAILABLE) -> Iterator[None]:
    with pytest.raises(StoreError) as caught:
        yield
    assert caught.value.kind is kind


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let looks at a store that is away come at once."""
    sleep = asyncio.sleep
    monkeypatch.setattr("asyncio.sleep", lambda _: sleep(0.005))


async def test_a_turn_is_kept_in_the_store_where_it_answers(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.running():
        kept = await world.keeping.commit(ACCESS, turn())
        assert not kept.spooled
        assert await world.keeping.store.get_response(ACCESS, response_id(1, 1)) is not None
        assert world.keeping.degraded() == ()
    assert world.seen == {("commit_turn", "ok"): 1, ("get_response", "ok"): 1}
    assert not (tmp_path / "1").exists()


async def test_a_turn_waits_on_the_disk_while_the_store_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WRITTEN_S", 0.2)
    world = World(tmp_path)
    async with world.running():
        await world.keeping.ping(timeout_s=1)
        world.store.away = True
        kept = await world.keeping.commit(ACCESS, turn(1, 1))
        assert kept.spooled
        assert any("1 turns wait" in told for told in world.keeping.degraded())
        # Nobody hears that it is not there, and what follows it waits behind it.
        with refused():
            await world.keeping.get_response(ACCESS, response_id(1, 1))
        world.store.away = False
        assert (await world.keeping.commit(ACCESS, turn(1, 2))).spooled
        monkeypatch.undo()
        found = await world.keeping.get_response(ACCESS, response_id(1, 2))
        assert found == turn(1, 2).response
        assert world.store.came == [response_id(1, 1), response_id(1, 2)]
        assert world.keeping.degraded() == ()


async def test_a_turn_that_waited_longer_than_its_key_is_kept_without_it(
    tmp_path: Path, quick: None
) -> None:
    world = World(tmp_path)
    async with world.running():
        await world.keeping.ping(timeout_s=1)
        world.store.away = True
        key = Idempotency("k", b"d" * 16, 10**18)
        late = structs.replace(turn(1, 1), idempotency=key)
        assert (await world.keeping.commit(ACCESS, late)).spooled
        world.store.away = False
        # Somebody asked again on another node, when the reservation was over.
        other = response_id(2, 1)
        await world.store.reserve_key(ACCESS, key, other, now_us=1)
        assert await world.keeping.get_response(ACCESS, response_id(1, 1)) is not None
        assert world.keeping.degraded() == ()
        again = await world.store.reserve_key(ACCESS, key, other, now_us=1)
        assert again.state is KeyState.NEW
    assert world.seen["replay", "conflict"] == 1


async def test_a_store_that_is_away_is_left_alone_and_found_again(
    tmp_path: Path, quick: None
) -> None:
    world = World(tmp_path)
    async with world.running():
        await world.keeping.ping(timeout_s=1)
        await world.tripped()
        asked = world.store.asked
        with refused():
            await world.keeping.get_response(ACCESS, response_id(1, 1))
        assert (await world.keeping.commit(ACCESS, turn(1, 1))).spooled
        assert world.store.asked == asked
        assert world.seen["get_response", "away"] == 1
        assert world.keeping.degraded()[0] == "store_away: the weather is bad"
        assert world.keeping.reasons() == ()
        world.store.away = False
        world.now_s += 10.0
        await until(lambda: world.spool.turns == 0)
        assert world.store.came == [response_id(1, 1)]
        await until(lambda: world.keeping.degraded() == ())


async def test_what_the_store_does_not_like_is_refused_at_once(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.store.disliked.add(response_id(1, 1))
    async with world.running():
        with refused(StoreErrorKind.REJECTED):
            await world.keeping.commit(ACCESS, turn(1, 1))
        assert world.spool.turns == 0
        for _ in range(10):
            with refused(StoreErrorKind.BAD_REFERENCE):
                await world.keeping.link_items(ACCESS, "conv_1", ["msg_1"], now_us=1)
        # An answer that one does not like is an answer.
        assert world.keeping.degraded() == ()


async def test_strict_history_is_refused_while_the_store_is_away(tmp_path: Path) -> None:
    world = World(tmp_path, strict=True)
    async with world.running():
        await world.keeping.ping(timeout_s=1)
        world.keeping.check_can_keep()
        await world.tripped()
        with refused():
            world.keeping.check_can_keep()
        with refused():
            await world.keeping.commit(ACCESS, turn())
        assert world.spool.turns == 0


async def test_what_is_to_be_written_into_the_store_itself_never_waits_on_the_disk(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    async with world.running():
        assert await world.keeping.write(ACCESS, turn(1, 1)) == Kept()
        world.store.away = True
        with refused():
            await world.keeping.write(ACCESS, turn(2, 1))
        assert world.spool.turns == 0


async def test_a_full_spool_is_said_before_anything_runs(tmp_path: Path) -> None:
    world = World(tmp_path, turns_max=2)
    async with world.running():
        await world.keeping.ping(timeout_s=1)
        world.store.away = True
        for number in (1, 2):
            world.keeping.check_can_keep()
            await world.keeping.commit(ACCESS, turn(number, 1))
        with refused():
            world.keeping.check_can_keep()
        with refused():
            await world.keeping.commit(ACCESS, turn(3, 1))
        assert any("spool_full" in told for told in world.keeping.degraded())


async def test_a_disk_that_fails_as_well_is_said_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    async with world.running():
        await world.keeping.ping(timeout_s=1)
        await world.tripped()

        def failing(*_: object) -> int:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", failing)
            world.keeping.check_can_keep()
            with refused():
                await world.keeping.commit(ACCESS, turn(1, 1))
            with refused():
                world.keeping.check_can_keep()
            assert any("spool_fails" in told for told in world.keeping.degraded())
        assert (await world.keeping.commit(ACCESS, turn(1, 1))).spooled
        world.keeping.check_can_keep()


async def test_a_store_that_cannot_be_opened_keeps_turns_waiting(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.store.away = True
    async with world.running():
        assert (await world.keeping.commit(ACCESS, turn())).spooled
        with refused():
            await world.keeping.get_conversation(ACCESS, "conv_1")
        world.store.away = False
        await until(lambda: world.spool.turns == 0)
        assert world.store.came == [response_id(1, 1)]


async def test_tables_that_are_too_old_are_a_reason_not_to_be_ready(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.refusal = OldTablesError("run it")
    async with world.running():
        with refused():
            await world.keeping.get_conversation(ACCESS, "conv_1")
        assert world.keeping.reasons() == ("run it",)
        assert world.keeping.degraded() == ()
        world.refusal = None
        await until(lambda: world.keeping.reasons() == ())


async def test_a_url_that_names_no_store_is_said_and_nothing_ends(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.refusal = ValueError("the store x needs the package 'y'")
    async with world.running():
        with refused():
            await world.keeping.get_conversation(ACCESS, "conv_1")
        assert world.keeping.degraded()[0] == "store_away: the store x needs the package 'y'"


async def test_who_leaves_says_nothing_about_the_store(tmp_path: Path) -> None:
    world = World(tmp_path)

    async def hanging(access: Access, record: Conversation) -> Conversation:
        await asyncio.Event().wait()
        return record

    async with world.running():
        await world.keeping.ping(timeout_s=1)
        world.store.create_conversation = hanging  # type: ignore[method-assign]  # a store that hangs
        for _ in range(10):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.001):
                    await world.keeping.create_conversation(ACCESS, Conversation("conv_1", 1, 1))
        assert world.seen["create_conversation", "cancelled"] == 10
        assert world.keeping.degraded() == ()


async def test_a_slow_store_is_said_to_be_slow(tmp_path: Path) -> None:
    world = World(tmp_path)

    async def slow(*, timeout_s: float) -> None:
        world.now_s += 2.0

    async with world.running():
        await world.keeping.ping(timeout_s=1)
        world.store.ping = slow  # type: ignore[method-assign]  # a store that is slow
        for number in range(1, 5):
            await world.keeping.ping(timeout_s=1)
            assert bool(world.keeping.degraded()) == (number >= 3)
        assert world.keeping.degraded()[0].startswith("store_slow: 4 answers took over 1 s")


async def test_bad_weather_loses_nothing_and_doubles_nothing(tmp_path: Path, quick: None) -> None:
    world = World(tmp_path, turns_max=1_000)
    rng = random.Random(7)
    async with world.running():
        await world.keeping.ping(timeout_s=1)
        for number in range(1, 21):
            world.store.away = rng.random() < 0.5
            # The breaker's times are over at once.
            world.now_s += 10.0
            async with asyncio.TaskGroup() as group:
                for thread in range(1, 6):
                    group.create_task(world.keeping.commit(ACCESS, turn(thread, number)))
        world.store.away = False
        world.now_s += 10.0
        world.spool.hurry()
        await until(lambda: world.spool.turns == 0)
    assert len(world.store.came) == len(set(world.store.came)) == 100
    assert in_order(world.store.came)
