import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from smg_mesh.crdt.namespace import Heard, StateError
from smg_mesh.io.counters import Counters
from smg_mesh.io.security.secret_vault import Vault
from smg_mesh.io.shared_state import state_upkeep as caring
from smg_mesh.io.shared_state.state_upkeep import StateUpkeep


class Workers:
    """Owners of secrets, and what was done about them."""

    def __init__(self) -> None:
        self.owners: list[str] = []
        self.secrets: list[bytes] = []
        self.resealed: list[str] = []
        self.untidy = 0
        self.tidied = 0
        self.looks = 0
        self.tidies = 0
        self.forgotten: list[str] = []
        self.wrong: Exception | None = None
        self.heard: list[Heard] = []

    def watch(self, heard: Heard) -> None:
        self.heard.append(heard)

    def sealed(self) -> Sequence[bytes]:
        return self.secrets

    def tidy(self, wall_ms: int, *, living: Sequence[str]) -> int:
        assert living == World.living
        assert wall_ms == 7
        self.tidies += 1
        done = min(2, self.untidy)
        self.untidy -= done
        self.tidied += done
        return done

    def forget_node(self, name: str, *, living: Sequence[str]) -> int:
        assert living == World.living
        self.forgotten.append(name)
        return 1

    def reseal(self, renew: Callable[[bytes], bytes | None], mine: Callable[[str], bool]) -> int:
        self.looks += 1
        if self.wrong is not None:
            raise self.wrong
        todo = [owner for owner in self.owners if mine(owner) and owner not in self.resealed][:2]
        self.resealed += todo
        return len(todo)


class Audit:
    def __init__(self) -> None:
        self.over = 0
        self.looks = 0

    def tidy(self, *, living: Sequence[str]) -> int:
        assert living == World.living
        self.looks += 1
        over, self.over = self.over, 0
        return over


class Providers:
    """Secrets of providers: as many as there are are sealed anew at the next look."""

    def __init__(self) -> None:
        self.todo = 0
        self.secrets: list[bytes] = []

    def sealed(self) -> Sequence[bytes]:
        return self.secrets

    def reseal(self, renew: Callable[[bytes], bytes | None], mine: Callable[[str], bool]) -> int:
        todo, self.todo = self.todo, 0
        return todo


class World:
    living: Sequence[str] = ("a", "b", "c")

    def __init__(self, me: str = "a") -> None:
        self.known = ["a", "b", "c", "dead"]
        self.workers = Workers()
        self.providers = Providers()
        self.audit = Audit()
        self.counters = Counters()
        self.caring = StateUpkeep(
            me,
            self.workers,
            self.providers,
            self.audit,
            Vault(),
            self,
            counters=self.counters,
            wall_ms=lambda: 7,
            known=lambda: self.known,
        )


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody wait."""
    monkeypatch.setattr(caring, "SOON_S", 0.01)
    monkeypatch.setattr(caring, "APART_S", 0.001)


@asynccontextmanager
async def running(world: World) -> AsyncIterator[World]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(world.caring.run())
        yield world
        task.cancel()


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110 - a test looks from outside
            await asyncio.sleep(0.002)


async def test_in_the_quiet_nothing_is_looked_at() -> None:
    async with running(World()) as world:
        await asyncio.sleep(0.05)
        assert world.workers.looks == world.workers.tidies == 0


async def test_what_changed_is_looked_at_soon_a_few_at_a_time_and_to_the_end() -> None:
    async with running(World()) as world:
        world.workers.owners = ["a"] * 1 + ["b"]
        world.workers.untidy = 7
        world.audit.over = 1
        world.caring.look()
        await until(lambda: world.workers.tidied == 7)
        assert world.audit.over == 0
        assert world.workers.resealed == ["a"]
        assert world.counters.get("state_resealed") == 1
        looks = world.workers.looks
        await asyncio.sleep(0.05)
        assert world.workers.looks <= looks + 1


async def test_a_change_of_a_worker_is_no_reason_to_look_at_all_secrets() -> None:
    async with running(World()) as world:
        world.workers.owners = ["a"]
        world.workers.untidy = 3
        world.workers.heard[0](["worker"])
        await until(lambda: world.workers.tidied == 3)
        assert world.workers.looks == 0


async def test_what_waits_for_its_minute_is_looked_at_again_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(caring, "LATER_S", 0.02)
    async with running(World()) as world:
        world.workers.heard[0](["worker"])
        await until(lambda: world.workers.tidies == 1)
        world.workers.untidy, world.workers.owners = 1, ["a"]
        await until(lambda: world.workers.tidied == 1 and world.workers.resealed)


async def test_what_a_forgotten_member_listed_is_let_go_once() -> None:
    async with running(World()) as world:
        world.caring.look()
        await until(lambda: world.workers.looks)
        assert world.workers.forgotten == []
        world.known.remove("dead")
        world.caring.look()
        await until(lambda: world.workers.forgotten)
        looks = world.workers.looks
        world.caring.look()
        await until(lambda: world.workers.looks > looks)
        assert world.workers.forgotten == ["dead"]


def test_for_one_that_is_gone_exactly_one_of_the_living_writes() -> None:
    worlds = [World(name) for name in World.living]
    for owner in [f"gone-{number}" for number in range(30)]:
        assert sum(world.caring._is_mine(owner) for world in worlds) == 1
    assert [world.caring._is_mine("b") for world in worlds] == [False, True, False]
    chosen = {
        world.caring._me
        for world in worlds
        for n in range(30)
        if world.caring._is_mine(f"gone-{n}")
    }
    assert chosen == {"a", "b", "c"}


async def test_a_full_document_and_a_mistake_of_ours_end_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running(World()) as world:
        world.workers.wrong = StateError("full", "workers/3 is full")
        world.caring.look()
        await until(lambda: world.workers.looks == 1)
        assert caplog.records[-1].levelno == logging.WARNING
        world.workers.wrong = ValueError("a mistake")
        world.caring.look()
        await until(lambda: world.workers.looks == 2)
        assert world.counters.get("state_fault") == 1
        world.workers.wrong = None
        world.workers.owners = ["a"]
        world.caring.look()
        await until(lambda: world.workers.resealed)


def test_secrets_are_counted_by_the_key_they_need() -> None:
    world = World()
    world.workers.secrets = [b"\1\xaa\xbb\xcc\xdd...", b"\1\xaa\xbb\xcc\xde...", b"\0plain"]
    world.providers.secrets = [b"\1\xaa\xbb\xcc\xde..."]
    assert world.caring.sealed_with("aabbccdd") == 1
    assert world.caring.sealed_with(" AABBCCDE ") == 2
    assert world.caring.sealed_with("00000000") == 0
