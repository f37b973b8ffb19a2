"""Servers that are emptied, full, read-only, slow, killed, or too old for functions."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from smg_chaos.stores.redis import Durability
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import (
    Access,
    EventBlob,
    Idempotency,
    Location,
    Patch,
    Side,
    Status,
    StoreFigures,
    Turn,
)
from smg_storage.redis.server import RedisServer
from support.processes.servers import own_port
from support.store_contract.maker import Clock, Opened
from support.store_contract.stage import HOUR_S, Stage, ids, refused
from support.stores.redis_cluster import client_of, running_cluster
from support.stores.redis_monitor import listening
from support.stores.redis_server import Redis, running_redis
from support.stores.redis_stores import RedisMaker, new_prefix, redis_store

pytestmark = pytest.mark.integration
UNAVAILABLE = StoreErrorKind.UNAVAILABLE
PREFIX = "here"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Redis]:
    with running_redis(tmp_path, own=True) as server:
        yield server


@asynccontextmanager
async def staged(url: str, *, wait_replicas: int = 0) -> AsyncIterator[Stage]:
    clock = Clock()
    async with redis_store(url, clock, PREFIX, wait_replicas=wait_replicas) as store:
        yield Stage(Opened(store, store, clock))


async def test_a_server_that_lost_our_functions_gets_them_again(server: Redis) -> None:
    async with staged(server.url) as stage:
        made = await stage.chain_of(2)
        with client_of(server) as client:
            client.function_flush()
        assert (await stage.chain(made[1].id)).complete is True
        with client_of(server) as client:
            client.function_flush()
        page = await stage.store.find_items(stage.access, ["msg_1", "msg_2"])
        assert page == {}
        with client_of(server) as client:
            assert len(client.function_list()) == 1


async def test_two_nodes_load_the_same_functions_once(server: Redis) -> None:
    stores = [RedisMaker(server.url).open() for _ in range(3)]
    for each in stores:
        async with each:
            pass
    with client_of(server) as client:
        assert len(client.function_list()) == 1


@pytest.mark.parametrize("version", ["7.2.4", "6.2.14"])
async def test_a_server_without_functions_runs_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """As Redis 6.2 does, which knows neither functions nor flags of scripts."""
    told = RedisServer.told

    async def older(server: RedisServer, section: str) -> Mapping[str, object]:
        return {**await told(server, section), "redis_version": version}

    monkeypatch.setattr(RedisServer, "told", older)
    gone = ("--rename-command", "FUNCTION", "", "--rename-command", "FCALL", "")
    with running_redis(tmp_path, own=True, arguments=gone) as server:
        async with staged(server.url) as stage:
            turn = stage.turn(await stage.new_conversation(), items=3)
            async with listening(server.port) as heard:
                await stage.store.commit_turn(stage.access, turn)
            assert heard.calls == ["EVALSHA"]
            made = await stage.chain_of(3)
            assert (await stage.chain(made[2].id)).complete is True
            with client_of(server) as client:
                client.script_flush()
            pages = [await stage.listed(turn.response.conversation_id) for _ in range(2)]
            assert pages == [list(turn.links)] * 2
            assert await stage.store.delete_response(stage.access, made[0].id) is True


async def test_a_full_server_takes_nothing_but_reads_and_forgets(server: Redis) -> None:
    async with staged(server.url) as stage:
        made = await stage.chain_of(3)
        conversation_id = await stage.new_conversation()
        await stage.append(conversation_id, 3)
        with client_of(server) as client:
            client.config_set("maxmemory", "1mb")
        with refused(UNAVAILABLE):
            await stage.kept(stage.response())
        with refused(UNAVAILABLE):
            await stage.store.ping(timeout_s=5)
        assert ids((await stage.chain(made[2].id)).responses) == ids(made[::-1])
        assert len(await stage.listed(conversation_id)) == 3
        assert await stage.store.delete_response(stage.access, made[2].id) is True
        assert await stage.store.delete_conversation(stage.access, conversation_id) is True
        with client_of(server) as client:
            client.config_set("maxmemory", "0")
        await stage.store.ping(timeout_s=5)


async def test_a_server_that_became_a_copy_is_unavailable_for_writes(server: Redis) -> None:
    async with staged(server.url) as stage:
        made = await stage.kept(stage.response())
        with client_of(server) as client:
            client.config_set("replica-serve-stale-data", "yes")
            client.replicaof("127.0.0.1", "1")
        with refused(UNAVAILABLE):
            await stage.kept(stage.response())
        with pytest.raises(StoreError, match="READONLY"):
            await stage.store.ping(timeout_s=5)
        assert await stage.store.get_response(stage.access, made.id) == made
        with client_of(server) as client:
            client.replicaof("NO", "ONE")
        await stage.kept(stage.response())


async def test_a_commit_waits_for_copies_where_that_is_wanted(
    server: Redis, tmp_path: Path
) -> None:
    async with staged(server.url, wait_replicas=1) as stage:
        turn = stage.turn()
        turn = msgspec.structs.replace(turn, items=(), links=())
        with pytest.raises(StoreError, match="0 of 1 replicas") as told:
            await stage.store.commit_turn(stage.access, turn)
        assert told.value.kind is UNAVAILABLE
        with client_of(server) as client:
            client.config_set("repl-diskless-sync-delay", "0")  # it would wait for more copies
        copy_of = ("--replicaof", f"127.0.0.1 {server.port}")
        with running_redis(tmp_path, own=True, arguments=copy_of) as replica:
            await until_copied(server)
            assert (await stage.store.commit_turn(stage.access, turn)).again is True
            later = Turn(response=stage.response())
            async with redis_store(server.url, stage.clock, PREFIX, wait_replicas=1) as other:
                await other.create_conversation(stage.access, stage.conversation())
                replica.server.pause()
                for store in (stage.store, other):
                    # The second finds it there already, and yet not on a copy.
                    with refused(UNAVAILABLE):
                        await store.commit_turn(stage.access, later)
                replica.server.go_on()
            assert (await stage.store.commit_turn(stage.access, later)).again is True
            with client_of(replica) as client:
                client.replicaof("NO", "ONE")
            async with redis_store(replica.url, stage.clock, PREFIX) as copy:
                for each in (turn, later):
                    read = await copy.get_response(stage.access, each.response.id)
                    assert read == each.response


async def until_copied(server: Redis) -> None:
    """Wait for a copy to be there."""
    with client_of(server) as client:
        for _ in range(100):
            client.set("written", "1")
            if client.wait(1, 200) == 1:
                return
            await asyncio.sleep(0.02)
    pytest.fail("there is no copy")


async def test_a_server_that_hangs_is_unavailable_in_time_and_then_there_again(
    server: Redis,
) -> None:
    async with staged(server.url) as stage:
        made = await stage.kept(stage.response())
        server.server.pause()
        short = Access(tenant="acme", timeout_s=0.2)
        for _ in range(3):
            with refused(UNAVAILABLE):
                await stage.store.get_response(short, made.id)
        server.server.go_on()
        assert await stage.store.get_response(stage.access, made.id) == made


async def test_answers_never_go_to_somebody_else_after_a_call_was_given_up(server: Redis) -> None:
    async with staged(server.url) as stage:
        made = [await stage.kept(stage.response(text=f"answer {n}")) for n in range(20)]
        server.server.pause()
        short = Access(tenant="acme", timeout_s=0.05)
        lost = await asyncio.gather(
            *(stage.store.get_response(short, each.id) for each in made), return_exceptions=True
        )
        assert all(isinstance(each, StoreError) for each in lost)
        server.server.go_on()
        for each in made:
            assert await stage.store.get_response(stage.access, each.id) == each


@pytest.mark.parametrize("durability", ["everysec", "always"])
async def test_nothing_acknowledged_is_lost_with_a_killed_server(
    tmp_path: Path, durability: Durability
) -> None:
    with running_redis(tmp_path, own=True, durability=durability) as server:
        async with staged(server.url) as stage:
            conversation_id = await stage.new_conversation()
            turns = [stage.turn(conversation_id) for _ in range(400)]
            acknowledged: list[int] = []
            refusals: set[StoreErrorKind] = set()

            async def write(writer: int) -> None:
                for index in range(writer, len(turns), 4):
                    try:
                        await stage.store.commit_turn(stage.access, turns[index])
                    except StoreError as error:
                        refusals.add(error.kind)
                        return
                    acknowledged.append(index)
                    if len(acknowledged) == 100:
                        server.server.kill9()

            await asyncio.gather(*(write(writer) for writer in range(4)))
            assert 100 <= len(acknowledged) < 110
            assert refusals == {UNAVAILABLE}
            with refused(UNAVAILABLE):
                await stage.store.ping(timeout_s=5)
            server.server.start()
            listed = await stage.listed(conversation_id)
            for index in acknowledged:
                read = await stage.store.get_response(stage.access, turns[index].response.id)
                assert read == turns[index].response
                assert set(turns[index].links) <= set(listed)
            for turn in turns:
                await stage.store.commit_turn(stage.access, turn)
            listed = await stage.listed(conversation_id)
            assert sorted(listed) == sorted(link for turn in turns for link in turn.links)
            assert await stage.positions(conversation_id) == list(range(1, 801))


async def test_a_server_that_is_not_there_is_unavailable(server: Redis) -> None:
    server.server.stop()
    with refused(UNAVAILABLE):
        async with staged(server.url):
            pytest.fail("it cannot be started")


async def test_one_server_of_a_cluster_is_refused_by_itself(tmp_path: Path) -> None:
    with (
        # Left to itself it takes the port 10,000 above its own, which may be anybody's.
        own_port() as bus_port,
        running_redis(
            tmp_path,
            own=True,
            arguments=("--cluster-enabled", "yes", "--cluster-port", str(bus_port)),
        ) as server,
    ):
        by_itself = pytest.raises(StoreError, match=r"redis\+cluster://")
        with by_itself:
            async with staged(server.url):
                pytest.fail("it cannot be started")


async def test_a_start_says_what_the_settings_lose(server: Redis) -> None:
    with client_of(server) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
    async with redis_store(server.url, Clock(), new_prefix()) as store:
        assert [warning.split(":")[0] for warning in store.warnings] == [
            "redis has maxmemory-policy allkeys-lru",
            "redis has appendonly no",
        ]


async def test_every_key_of_what_ends_has_an_end(server: Redis) -> None:
    async with staged(server.url) as stage:
        end_us = stage.in_s(HOUR_S)
        made = msgspec.structs.replace(stage.conversation(), expires_us=end_us)
        await stage.store.create_conversation(stage.access, made)
        turn = stage.turn(made.id)
        key = Idempotency("key", b"d" * 16, end_us)
        place = Location(stage.new_id("msg"), turn.response.id, Side.INPUT, 0)
        ending = msgspec.structs.replace(
            turn,
            response=msgspec.structs.replace(
                turn.response, expires_us=end_us, safety_identifier="person"
            ),
            items=[msgspec.structs.replace(item, expires_us=end_us) for item in turn.items],
            locations=[place],
            idempotency=key,
        )
        await stage.store.commit_turn(stage.access, ending)
        blob = EventBlob(0, 3, b"events")
        await stage.store.append_events(stage.access, turn.response.id, [blob], expires_us=end_us)
        with client_of(server) as client:
            left = {key: client.pttl(key) for key in client.keys("*:acme:*")}
            # A row, a conversation with its list, two items with who holds them, a place, a person's list, a key, events;
            # and how much there is, to the end of a day.
            assert len(left) == 13
            assert 3_600_000 < left.pop(b"here:acme:used") <= 25 * 3_600_000 + 60_000
            # The list stays until a sweep has let go of the items in it, which may have no end of their own.
            (listed,) = (key for key in left if b":items:" in key)
            assert left.pop(listed) == -1
            for key, left_ms in left.items():
                # An hour, and the minute of grace in which only our own clock counts.
                assert 3_600_000 < left_ms <= 3_660_000, key


async def test_who_waits_for_a_connection_is_not_passed_by(server: Redis) -> None:
    """More callers than connections, each of whom comes again at once: none of them waits for the others' last."""
    async with staged(server.url) as stage:
        conversation_id = await stage.new_conversation()
        order: list[int] = []

        async def write(writer: int) -> None:
            for _ in range(4):
                await stage.store.append_items(
                    stage.access, conversation_id, [stage.item()], now_us=stage.now_us
                )
                order.append(writer)

        await asyncio.gather(*(write(writer) for writer in range(48)))
        # Whoever was in the first round is done once before anybody is done three times.
        first_third = next(
            index for index, writer in enumerate(order) if order[: index + 1].count(writer) == 3
        )
        assert len(set(order[:first_third])) == 48


async def test_a_conversation_that_is_over_leaves_nothing_when_it_was_swept(server: Redis) -> None:
    async with staged(server.url) as stage:
        made = msgspec.structs.replace(stage.conversation(), expires_us=stage.in_s(HOUR_S))
        await stage.store.create_conversation(stage.access, made)
        for _ in range(7):
            await stage.append(made.id, 100)
        kept_id = await stage.new_conversation()
        kept = await stage.append(kept_id, 2)
        stage.clock.advance_s(HOUR_S)
        assert await stage.store.purge(now_us=stage.now_us, batch=9, timeout_s=30) >= 700
        assert await stage.store.purge(now_us=stage.now_us, batch=9, timeout_s=30) == 0
        with client_of(server) as client:
            left = sorted(key.split(b":")[3] for key in client.keys("*:acme:{*"))
        assert left == [b"conv", b"item", b"item", b"items", b"refs", b"refs"]
        figures = await stage.store.tenant_figures(stage.access)
        assert (figures.conversations, figures.items) == (1, 2)
        assert await stage.listed(kept_id) == ids(kept)


async def test_what_a_tenant_has_counts_until_the_end_of_its_day(server: Redis) -> None:
    async with staged(server.url) as stage:
        conversation_id = await stage.new_conversation()
        items = await stage.append(conversation_id, 2)
        running = msgspec.structs.replace(stage.running(), expires_us=stage.in_s(HOUR_S))
        await stage.kept(running)
        patch = Patch(response=bytes(1_000), expires_us=stage.in_s(2 * HOUR_S))
        await stage.store.patch_response(
            stage.access, running.id, patch, from_statuses=[Status.QUEUED]
        )
        kept = sum(len(item.document) for item in items)
        ends = len(running.input) + 1_000
        figures = await stage.store.tenant_figures(stage.access)
        assert figures == StoreFigures(conversations=1, items=2, responses=1, bytes=kept + ends)
        done = msgspec.structs.replace(running, status=Status.COMPLETED, response=bytes(9))
        await stage.store.commit_turn(stage.access, Turn(done))
        ends = len(running.input) + 9
        figures = await stage.store.tenant_figures(stage.access)
        assert figures == StoreFigures(conversations=1, items=2, responses=1, bytes=kept + ends)
        stage.clock.advance_s(26 * HOUR_S)
        for _ in range(2):
            figures = await stage.store.tenant_figures(stage.access)
            assert figures == StoreFigures(conversations=1, items=2, responses=0, bytes=kept)


async def test_in_a_cluster_nobody_counts_for_a_tenant(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as (_, url):
        async with RedisMaker(url).open() as opened:
            stage = Stage(opened)
            await stage.append(await stage.new_conversation(), 1)
            assert await stage.store.tenant_figures(stage.access) == StoreFigures()
