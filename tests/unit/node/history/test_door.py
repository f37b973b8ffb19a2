import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from smg_node.config.plain import plain_settings
from smg_node.config.settings import Settings
from smg_node.core.errors import SmgError
from smg_node.history.door import HistoryDoor, spool_folder, turns_wait
from smg_node.history.hooked import HookedKeeping
from smg_node.telemetry.metrics import Meters
from smg_node.world import SystemClock
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.hooks import NamedHook, Reject
from support.raw_http import until
from support.spools import ACCESS, response_id, spool_at, turn
from support.storage_hooks import Witness


class NoVault:
    """A vault that holds nothing."""

    def seal(self, secret: str) -> bytes:
        return secret.encode()

    def open_secret(self, sealed: bytes) -> str | None:
        return None


def door_of(
    folder: Path, *, living: Sequence[str] = ("n1",), **storage: Any
) -> tuple[HistoryDoor, Meters]:
    settings = Settings(name="n1", data_dir=folder, storage=storage)  # type: ignore[arg-type]  # as a file gives it
    meters = Meters(CollectorRegistry(), version="1")
    door = HistoryDoor(
        plain_settings(settings),
        clock=SystemClock(),
        rng=random.Random(1),
        meters=meters,
        living=lambda: living,
        vault=NoVault(),
    )
    return door, meters


@asynccontextmanager
async def running(door: HistoryDoor) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(door.run())
        await asyncio.sleep(0)
        yield
        task.cancel()
    await door.close()


def scraped(meters: Meters, name: str) -> float:
    page = meters.exposition("")[0].decode()
    lines = [line for line in page.splitlines() if line.startswith(name)]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


async def test_nothing_is_opened_before_somebody_wants_it(tmp_path: Path) -> None:
    door, meters = door_of(tmp_path)
    async with running(door):
        await asyncio.sleep(0.02)
        assert door.kind == "sqlite"
        assert door.keeps
        assert (door.reasons(), door.degraded()) == ((), ())
        assert "smg_node_store_up" not in meters.exposition("")[0].decode()
    assert not (tmp_path / "history.db").exists()


async def test_what_is_kept_is_in_a_file_of_the_data_directory(tmp_path: Path) -> None:
    door, meters = door_of(tmp_path)
    async with running(door):
        await door.keeping().commit(ACCESS, turn())
        assert await door.keeping().get_response(ACCESS, response_id(1, 1)) is not None
        assert scraped(meters, "smg_node_store_up ") == 1
        assert scraped(meters, "smg_node_store_operations_total{") == 2
    assert (tmp_path / "history.db").exists()
    again, _ = door_of(tmp_path)
    async with running(again):
        assert await again.keeping().get_response(ACCESS, response_id(1, 1)) is not None


async def test_a_store_that_others_share_is_opened_with_the_node(tmp_path: Path) -> None:
    door, meters = door_of(tmp_path, url="postgresql://u:hidden@127.0.0.1:1/x")
    async with running(door):
        await until(lambda: "postgresql" in str(door.degraded()))
        assert "hidden" not in str(door.degraded())
        assert scraped(meters, "smg_node_store_up ") == 0
        assert (await door.keeping().commit(ACCESS, turn())).spooled
        assert scraped(meters, "smg_node_store_spool_turns ") == 1
    assert turns_wait(tmp_path / "spool" / "n1")


async def test_turns_of_an_earlier_process_are_written_without_being_asked_for(
    tmp_path: Path,
) -> None:
    door, _ = door_of(tmp_path)
    folder = tmp_path / "spool" / "n1"
    assert not turns_wait(folder)
    earlier = spool_at(folder, "1")
    await earlier.add(ACCESS, turn())
    await earlier.close()
    assert turns_wait(folder)
    async with running(door):
        await until(lambda: not turns_wait(folder) or door.degraded() == ())
        assert await door.keeping().get_response(ACCESS, response_id(1, 1)) is not None


async def test_history_that_others_do_not_see_is_said_where_there_are_others(
    tmp_path: Path,
) -> None:
    for living, kind in ((["n1"], "memory:"), (["n1", "n2"], "memory:"), (["n1", "n2"], "none:")):
        door, _ = door_of(tmp_path, living=living, url=kind)
        async with running(door):
            assert door.degraded() == ()
            await door.keeping().ping(timeout_s=5)
            told = [words.partition(":")[0] for words in door.degraded()]
            local = len(living) > 1 and kind == "memory:"
            assert told == (["history_is_local"] if local else [])


async def test_a_node_may_keep_nothing(tmp_path: Path) -> None:
    door, _ = door_of(tmp_path, url="none:")
    async with running(door):
        assert not door.keeps
        assert await door.keeping().get_response(ACCESS, response_id(1, 1)) is None
        with pytest.raises(StoreError) as caught:
            await door.keeping().commit(ACCESS, turn())
        assert caught.value.kind is StoreErrorKind.REJECTED


async def test_hooks_have_their_say_before_a_turn_waits_on_the_disk(tmp_path: Path) -> None:
    door, _ = door_of(tmp_path, url="postgresql://127.0.0.1:1/x")
    witness = Witness()
    async with running(door):
        keeper = HookedKeeping(door.keeping(), [NamedHook("w", witness)])
        keeper.check_can_keep()
        assert (await keeper.commit(ACCESS, turn(1, 1))).spooled
        assert [name for name, _ in witness.after_saw] == ["store_response"]
        no = HookedKeeping(door.keeping(), [NamedHook("n", Witness(lambda *_: Reject("no")))])
        with pytest.raises(StoreError) as caught:
            await no.commit(ACCESS, turn(2, 1))
        assert caught.value.kind is StoreErrorKind.REJECTED
        assert not door.keeping()._spool.waits("acme", [response_id(2, 1)])
        with pytest.raises(StoreError):
            await keeper.store.get_response(ACCESS, response_id(3, 1))
        assert witness.before_saw[-1][0] == "get_response"


async def test_a_hook_that_cannot_be_loaded_is_no_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = EntryPoint("broken", "support.no_such_module:make", "smg.storage_hooks")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda *, group: [point])
    with pytest.raises(SmgError, match=r"storage\.hooks"):
        door_of(tmp_path, hooks=["broken"])


async def test_hooks_of_the_configuration_are_around_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = EntryPoint("witness", "support.storage_hooks:nobody", "smg.storage_hooks")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda *, group: [point])
    door, _ = door_of(tmp_path, hooks=["witness:open"])
    assert isinstance(door._keeper(), HookedKeeping)


def test_a_spool_has_the_name_of_its_node(tmp_path: Path) -> None:
    settings = plain_settings(Settings(name="n1", data_dir=tmp_path))
    assert spool_folder(settings) == tmp_path / "spool" / "n1"
