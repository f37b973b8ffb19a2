import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from smg_node.config.frozen_settings import plain_settings, with_values
from smg_node.config.settings import Settings
from smg_node.core.errors import SmgError
from smg_node.history.peers.peer_interface import NoPeers, Peers
from smg_node.history.peers.routed_store import RoutedStore
from smg_node.history.service.lazy_history import LazyHistory, spool_folder, turns_wait
from smg_node.history.store.hooked_store import HookedKeeper
from smg_node.system_clock import SystemClock
from smg_node.telemetry.metrics.meters import Meters
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.hooks import NamedHook, Reject
from smg_storage.ids import holder_tag
from smg_storage.records import Status
from support.history.peer_histories import Net
from support.history.spools import ACCESS, response_id, spool_at, turn
from support.http.raw_http import until
from support.stores.storage_hooks import Witness


class NoVault:
    """A vault that holds nothing."""

    def seal(self, secret: str) -> bytes:
        return secret.encode()

    def open_secret(self, sealed: bytes) -> str | None:
        return None


def door_of(
    folder: Path,
    *,
    name: str = "n1",
    seed: int = 1,
    living: Sequence[str] = ("n1",),
    peers: Peers | None = None,
    **storage: Any,
) -> tuple[LazyHistory, Meters]:
    settings = Settings(name=name, data_dir=folder, storage=storage)  # type: ignore[arg-type]  # as a file gives it
    meters = Meters(CollectorRegistry(), version="1")
    door = LazyHistory(
        plain_settings(settings),
        clock=SystemClock(),
        rng=random.Random(seed),
        meters=meters,
        living=lambda: living,
        vault=NoVault(),
        peers=NoPeers() if peers is None else peers,
    )
    return door, meters


@asynccontextmanager
async def running(door: LazyHistory) -> AsyncIterator[None]:
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
        for operation in ("commit_turn", "get_response"):
            assert scraped(meters, f'smg_node_store_operations_total{{op="{operation}"') == 1
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


async def test_runs_of_an_earlier_process_are_ended_without_being_asked_for(
    tmp_path: Path,
) -> None:
    door, _ = door_of(tmp_path)
    async with running(door):
        run = replace(
            turn().response,
            status=Status.QUEUED,
            background=True,
            owner=door.runs().owner,
            lease_token=1,
            lease_until_us=SystemClock().now_ms() * 1_000 + 3_600_000_000,
        )
        await door.keeping().store_response(ACCESS, run)
    again, meters = door_of(tmp_path, seed=2)
    adopted = "smg_node_registered_runs_adopted_total{"
    async with running(again):
        await until(lambda: scraped(meters, f'{adopted}outcome="failed"') == 1)
        ended = await again.keeping().get_response(ACCESS, run.id)
        assert ended is not None
        assert ended.status is Status.FAILED


async def test_history_that_others_do_not_see_is_said_where_there_are_others(
    tmp_path: Path,
) -> None:
    for others, kind in (([], "memory:"), (["n2"], "memory:"), (["n2"], "none:")):
        net = Net(states=dict.fromkeys(others, "alive"))
        door, _ = door_of(tmp_path, peers=net.peers("n1"), url=kind)
        async with running(door):
            assert door.degraded() == ()
            await door.keeping().ping(timeout_s=5)
            told = [words.partition(":")[0] for words in door.degraded()]
            local = bool(others) and kind == "memory:"
            assert told == (["history_is_local"] if local else [])
            net.states |= {"n3": "dead", "n4": "left", "n5": "suspect"}
            words = door.degraded()[1:]
            assert words == (
                (
                    "holder_away: n3 is dead, and so are the threads it holds",
                    "holder_away: n4 has left, and so are the threads it holds",
                )
                if kind == "memory:"
                else ()
            )


async def test_each_node_answers_for_what_it_holds_without_having_been_used(
    tmp_path: Path,
) -> None:
    net = Net()
    doors = [
        door_of(tmp_path / name, name=name, peers=net.peers(name), url=url)[0]
        for name, url in (("n1", "sqlite:///history.db"), ("n2", "memory:"))
    ]
    async with running(doors[0]), running(doors[1]):
        here, there = (door._keeper() for door in doors)
        mine, theirs = (
            replace(turn().response, id=f"resp_{1:012x}{holder_tag(name)}{1:030x}")
            for name in ("n1", "n2")
        )
        await here.commit(ACCESS, replace(turn(), response=theirs))
        assert await there.store.get_response(ACCESS, theirs.id) == theirs
        assert net.asked == [("n1", "n2")]
        await there.store.store_response(ACCESS, mine)
        assert await here.store.get_response(ACCESS, mine.id) == mine
        assert await doors[0].keeping().get_response(ACCESS, theirs.id) is None
        threads = doors[0]._many.threads()
        assert threads is not None
        assert threads.thread().startswith(holder_tag("n1"))


def test_where_all_share_a_store_nobody_is_asked(tmp_path: Path) -> None:
    door, _ = door_of(tmp_path, url="postgresql://127.0.0.1:1/x", peers=Net().peers("n1"))
    assert not isinstance(door._many.keeper(), RoutedStore)
    assert door._many.threads() is None
    assert not any(words.startswith("history_is_local") for words in door.degraded())


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
        keeper = HookedKeeper(door.keeping(), [NamedHook("w", witness)])
        keeper.check_can_keep()
        assert (await keeper.commit(ACCESS, turn(1, 1))).spooled
        assert [name for name, _ in witness.after_saw] == ["store_response"]
        no = HookedKeeper(door.keeping(), [NamedHook("n", Witness(lambda *_: Reject("no")))])
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
    point = EntryPoint("witness", "support.stores.storage_hooks:nobody", "smg.storage_hooks")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda *, group: [point])
    door, _ = door_of(tmp_path, hooks=["witness:open"])
    assert isinstance(door._keeper(), HookedKeeper)


def test_a_spool_has_the_name_of_its_node(tmp_path: Path) -> None:
    settings = plain_settings(Settings(name="n1", data_dir=tmp_path))
    assert spool_folder(settings) == tmp_path / "spool" / "n1"


async def test_settings_are_followed_before_and_after_anybody_wanted_history(
    tmp_path: Path,
) -> None:
    door, _ = door_of(tmp_path)
    own = door._settings
    door.retune(with_values(own, {("history", "items_max"): 7}))
    options = door.options()
    assert options.items_max == 7
    quota = {("storage", "quota", "responses_max"): 5, ("retention", "sweep_s"): 3.0}
    door.retune(with_values(own, quota))
    assert door.options() is options
    assert (options.items_max, options.quota.responses, options.sweep_s) == (2_000, 5, 3.0)
    door.retune(own)
    assert options.quota.responses == 0


async def test_connections_of_a_store_that_has_some_are_counted(tmp_path: Path) -> None:
    door, meters = door_of(tmp_path)
    async with running(door):
        await door.keeping().ping(timeout_s=5)
        pool = door.keeping().pool()
        assert pool is not None
        assert scraped(meters, "smg_node_store_pool_size ") == pool.size > 0
        # Others may look into the store just now, such as who ends what others began.
        assert 0 <= scraped(meters, "smg_node_store_pool_in_use ") <= pool.size
        assert scraped(meters, "smg_node_store_pool_wait_seconds_total ") >= 0
    memory, seen = door_of(tmp_path, url="memory:")
    async with running(memory):
        await memory.keeping().ping(timeout_s=5)
        assert "\nsmg_node_store_pool_size " not in seen.exposition("")[0].decode()


async def test_what_a_quota_refuses_is_counted(tmp_path: Path) -> None:
    door, meters = door_of(tmp_path, url="memory:", quota={"conversations_max": 1})
    async with running(door):
        await door.quotas().conversation(ACCESS, 0)
        with pytest.raises(SmgError, match="1 conversations"):
            await door.quotas().conversation(ACCESS, 0)
        assert scraped(meters, "smg_node_store_quota_refused_total ") == 1
