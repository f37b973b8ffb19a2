"""Members that share state over real sockets, in one process: spread, restart, join, rotate."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from smg_mesh.io.security.secret_marks import sealed_with
from smg_mesh.io.shared_state import state_upkeep as caring
from smg_mesh.mesh import MeshError, make_key
from smg_mesh.shared import Shared, WorkerSpec
from support.mesh.mesh_cluster import agree, cluster, free_port, key_file, make_mesh, until
from support.mesh.shared_state_members import Node, add_node, make_shared, same

WORKERS = 1_000
JOINING = "joining: the cluster's state is not here yet"


def value(node: Node, key: str) -> object:
    found = node.shared.settings.get(key)
    return None if found is None else found.value


def put(node: Node, key: str, content: object) -> None:
    node.shared.settings.set(key, content, version=None)


async def all_have(nodes: Sequence[Node], key: str, content: object) -> float:
    """Wait until that is what counts on all of them; return how long it took, in seconds."""
    return await until(lambda: all(value(node, key) == content for node in nodes))


def spec(number: int) -> WorkerSpec:
    return WorkerSpec(url=f"grpc://10.0.{number // 250}.{number % 250}:50051", model="llama")


def add_workers(shared: Shared, count: int) -> None:
    for number in range(count):
        shared.workers.add(f"worker-{number}", "api", spec(number))


# ── Spreading ────────────────────────────────────────────────────────────────


async def test_what_one_member_writes_counts_on_all_within_half_a_second() -> None:
    async with cluster() as nodes:
        a = await add_node(nodes, "a")
        b, c = [await add_node(nodes, name, a) for name in "bc"]
        everybody = [a, b, c]
        await until(lambda: agree([node.mesh for node in everybody]))
        await until(lambda: all(node.shared.held for node in everybody))
        took_s = []
        for number, writer in enumerate(everybody * 3):
            put(writer, "routing.policy", number)
            took_s.append(await all_have(everybody, "routing.policy", number))
        took_s.sort()
        # 0.06 s in the middle on an idle machine; the bound is for busy ones.
        assert took_s[len(took_s) // 2] < 0.5
        await until(lambda: same(everybody))
        assert all(node.shared.living() == ("a", "b", "c") for node in everybody)
        assert not [
            key for node in everybody for key in node.shared.counters() if "fault" in key[0]
        ]


async def test_a_worker_added_on_one_member_is_on_all_and_removed_on_another_it_is_gone() -> None:
    async with cluster() as nodes:
        a = await add_node(nodes, "a")
        b, c = [await add_node(nodes, name, a) for name in "bc"]
        await until(lambda: agree([a.mesh, b.mesh, c.mesh]))
        a.shared.workers.add("w", "api", spec(1))
        await until(lambda: all(node.shared.workers.get("w") for node in (b, c)))
        b.shared.workers.remove("w")
        await until(lambda: not any(node.shared.workers.get("w") for node in (a, b, c)))
        await until(lambda: same([a, b, c]))


async def test_a_worker_outlives_the_member_that_registered_it() -> None:
    async with cluster() as nodes:
        a = await add_node(nodes, "a")
        b, c = [await add_node(nodes, name, a) for name in "bc"]
        await until(lambda: agree([a.mesh, b.mesh, c.mesh]))
        c.shared.workers.add("w", "api", spec(1))
        await until(lambda: all(node.shared.workers.get("w") for node in (a, b)))
        await nodes.crash(c.mesh)
        await until(lambda: all(node.shared.living() == ("a", "b") for node in (a, b)))
        assert a.shared.workers.get("w") == b.shared.workers.get("w") is not None


async def test_what_a_member_says_of_itself_is_heard_and_forgotten_with_it() -> None:
    async with cluster() as nodes:
        a = await add_node(nodes, "a")
        b = await add_node(nodes, "b", a)
        await until(lambda: agree([a.mesh, b.mesh]) and len(b.shared.living()) == 2)
        b.shared.running.publish(settings="abc")
        await until(lambda: a.shared.running.all().get("b") == {"settings": "abc"})


# ── Joining ──────────────────────────────────────────────────────────────────


async def test_the_first_member_holds_all_there_is_at_once() -> None:
    async with cluster() as nodes:
        a = await add_node(nodes, "a")
        assert a.shared.held
        assert a.mesh.ready() is None
        assert a.mesh.status().held


async def test_a_closed_member_keeps_its_state_for_itself(tmp_path: Path) -> None:
    for expected in (None, 1):
        shared = make_shared("a", tmp_path)
        async with cluster() as nodes:
            mesh = make_mesh("a", shared=shared, insecure=False, data_dir=tmp_path)
            await mesh.start()
            nodes.run(mesh)
            assert mesh.closed
            assert mesh.ready() is None
            found = shared.settings.get("x")
            assert (None if found is None else found.value) == expected
            shared.settings.set("x", 1, version=None)
            await until(lambda: shared.unsaved == 0 and shared.counters())  # noqa: B023 (waited for here)


async def test_a_thousand_workers_are_there_when_a_joining_member_says_it_is_ready() -> None:
    async with cluster() as nodes:
        a = await add_node(nodes, "a")
        add_workers(a.shared, WORKERS)
        b = await add_node(nodes, "b", a, join_grace_s=3600)
        assert b.mesh.ready() is not None
        assert not b.shared.held
        begun_s = time.monotonic()
        while b.mesh.ready() is not None:
            assert not b.shared.held
            await asyncio.sleep(0.001)
        # 0.3 s on an idle machine.
        assert time.monotonic() - begun_s < 15
        assert len(b.shared.workers.records()) == WORKERS
        assert b.shared.workers.records() == a.shared.workers.records()
        (joined,) = [event for event in b.mesh.events() if event.kind == "state_joined"]
        assert joined.detail["workers"] == WORKERS
        await until(lambda: same([a, b]))


async def test_a_member_that_finds_peers_without_their_state_is_not_ready_yet() -> None:
    async with cluster() as nodes:
        a = await add_node(nodes, "a")
        put(a, "x", 1)
        b = await add_node(nodes, "b", a, join_grace_s=3600)
        b.shared.met("nobody", full=True, held=False)
        await until(lambda: b.mesh.status().joined)
        assert b.mesh.ready() in (None, JOINING)
        await until(lambda: b.mesh.ready() is None)
        assert value(b, "x") == 1


async def test_readiness_does_not_wait_for_ever_for_a_state_that_does_not_come() -> None:
    async with cluster() as nodes:
        late = await add_node(nodes, "late", f"127.0.0.1:{free_port()}", join_grace_s=0.2)
        assert late.mesh.ready() is not None
        await until(lambda: late.mesh.ready() is None)
        assert not late.shared.held
        assert any("joining" in trouble for trouble in late.mesh.status().degraded)
        put(late, "x", 1)  # it serves, and may be written to
        assert value(late, "x") == 1


async def test_members_that_are_each_others_first_do_not_wait_for_one_another() -> None:
    ports = [free_port() for _ in range(3)]
    everybody = [f"127.0.0.1:{port}" for port in ports]
    async with cluster() as nodes:
        members = [
            await add_node(nodes, f"n{n}", *everybody, listen_port=port, join_grace_s=3600)
            for n, port in enumerate(ports)
        ]
        await until(lambda: all(node.mesh.ready() is None for node in members))
        assert all(node.shared.held for node in members)


# ── Restarting ───────────────────────────────────────────────────────────────


async def test_a_member_that_restarts_brings_what_it_had_and_gets_what_it_missed(
    tmp_path: Path,
) -> None:
    async with cluster() as nodes:
        a = await add_node(nodes, "a", folder=tmp_path)
        b = await add_node(nodes, "b", a, folder=tmp_path)
        await until(lambda: agree([a.mesh, b.mesh]))
        put(b, "of-b", 1)
        put(a, "of-a", 1)
        await until(lambda: value(a, "of-b") == value(b, "of-a") == 1)
        await nodes.crash(b.mesh)
        put(a, "of-a", 2)
        put(a, "of-b", 2)
        again = await add_node(nodes, "b", a, folder=tmp_path, join_grace_s=3600)
        assert value(again, "of-b") == 1  # from its disk, before it has met anybody
        assert again.shared.absent_ms is not None
        await until(lambda: again.mesh.ready() is None)
        assert (value(again, "of-a"), value(again, "of-b")) == (2, 2)
        put(again, "of-b", 3)
        await until(lambda: value(a, "of-b") == 3)
        await until(lambda: same([a, again]))


async def test_a_cluster_that_was_stopped_comes_back_whole_from_its_disks(tmp_path: Path) -> None:
    ports = [free_port() for _ in range(3)]
    everybody = [f"127.0.0.1:{port}" for port in ports]

    async def start() -> list[Node]:
        return [
            await add_node(
                nodes, f"n{n}", *everybody, folder=tmp_path, listen_port=port, join_grace_s=3600
            )
            for n, port in enumerate(ports)
        ]

    async with cluster() as nodes:
        before = await start()
        await until(lambda: all(node.mesh.ready() is None for node in before))
        for number, node in enumerate(before):
            put(node, f"setting-{number}", number)
        add_workers(before[1].shared, 20)
        before[1].shared.workers.remove("worker-7")
        await until(lambda: same(before))
        # One goes before the last change, so that no two disks are the same.
        await nodes.leave(before[2].mesh)
        put(before[0], "setting-0", "last")
        await until(lambda: value(before[1], "setting-0") == "last")
        await nodes.leave(before[1].mesh)
        await nodes.leave(before[0].mesh)

        after = await start()
        await until(lambda: all(node.mesh.ready() is None for node in after))
        await until(lambda: same(after))
        for node in after:
            assert [value(node, f"setting-{number}") for number in range(3)] == ["last", 1, 2]
            assert len(node.shared.workers.records()) == 19
            assert node.shared.workers.get("worker-7") is None


async def test_who_was_away_for_weeks_brings_nothing_back_that_was_removed(tmp_path: Path) -> None:
    week_ms = 7 * 86_400_000
    async with cluster() as nodes:
        a = await add_node(nodes, "a", folder=tmp_path)
        b = await add_node(nodes, "b", a, folder=tmp_path)
        await until(lambda: agree([a.mesh, b.mesh]))
        b.shared.workers.add("gone", "api", spec(1))
        put(b, "kept", 1)
        await until(lambda: a.shared.workers.get("gone") and value(a, "kept") == 1)
        await until(lambda: same([a, b]))
        await nodes.crash(b.mesh)
        a.shared.workers.remove("gone")
        await nodes.crash(a.mesh)
        # Everybody's clock is a week and a day on; a was there all the time, and has forgotten the removal.
        when = tmp_path / "a" / "state" / "when.json"
        later_ms = week_ms + 86_400_000
        when.write_text(
            f'{{"version":1,"wall_ms":{time.time_ns() // 1_000_000 + later_ms},"boot":1}}'
        )
        a = await add_node(nodes, "a", folder=tmp_path, later_ms=later_ms)
        back = await add_node(nodes, "b", a, folder=tmp_path, later_ms=later_ms)
        await until(lambda: back.mesh.ready() is None)
        await until(lambda: same([a, back]))
        assert value(back, "kept") == value(a, "kept") == 1
        assert a.shared.workers.get("gone") is None
        assert back.shared.workers.get("gone") is None


async def test_a_node_that_was_alone_brings_what_it_had_into_the_mesh(tmp_path: Path) -> None:
    alone = make_shared("a", tmp_path)
    await alone.open()
    alone.workers.add("w", "api", WorkerSpec(url="grpc://x:1", sealed_key=alone.seal("secret")))
    await alone.close()
    async with cluster() as nodes:
        shared = make_shared("a", tmp_path / "mesh" / "a", before=[tmp_path])
        key = key_file(tmp_path)
        mesh = make_mesh("a", shared=shared, key_file=key, data_dir=tmp_path / "mesh" / "a")
        await mesh.start()
        nodes.run(mesh)
        b = await add_node(nodes, "b", str(mesh.address), key_file=key)
        await until(lambda: b.shared.workers.get("w"))
        record = b.shared.workers.get("w")
        assert record is not None
        assert b.shared.open_secret(record.spec.sealed_key) == "secret"
        # It was plain on that one disk; where others can have it, it is sealed.
        await until(lambda: sealed_with(sealed_key(b)) != "")
        assert b.shared.open_secret(sealed_key(b)) == "secret"


def sealed_key(node: Node) -> bytes:
    record = node.shared.workers.get("w")
    assert record is not None
    return record.spec.sealed_key


# ── Secrets ──────────────────────────────────────────────────────────────────


async def test_secrets_survive_the_key_they_were_sealed_with_also_those_of_the_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caring, "SOON_S", 0.05)
    key = key_file(tmp_path)
    async with cluster() as nodes:
        a = await add_node(nodes, "a", key_file=key)
        b = await add_node(nodes, "b", a, key_file=key)
        c = await add_node(nodes, "c", a, key_file=key)
        await until(lambda: agree([node.mesh for node in (a, b, c)]))
        old = a.mesh.status().keys[0]
        for node in (a, c):
            sealed = node.shared.seal(f"secret of {node.mesh.name}")
            name = f"w-{node.mesh.name}"
            node.shared.workers.add(
                name, "api", WorkerSpec(url=f"grpc://{name}:1", sealed_key=sealed)
            )
        await until(lambda: same([a, b, c]) and len(b.shared.workers.records()) == 2)
        await nodes.crash(c.mesh)
        await until(lambda: a.shared.living() == b.shared.living() == ("a", "b"))
        new = make_key()
        report = await a.mesh.keyring("install", new)
        fresh = next(key for key in report.keys if key != old)
        assert b.shared.sealed_with(old) == 2
        await a.mesh.keyring("use", fresh)
        await until(lambda: a.shared.sealed_with(fresh) == b.shared.sealed_with(fresh) == 2)
        assert a.shared.sealed_with(old) == 0
        await a.mesh.keyring("remove", old)
        for node in (a, b):
            for name in "ac":
                record = node.shared.workers.get(f"w-{name}")
                assert record is not None
                assert node.shared.open_secret(record.spec.sealed_key) == f"secret of {name}"
        counted = [node.shared.counters().get(("state_resealed", ""), 0) for node in (a, b)]
        assert sum(counted) == 2  # each by one node only


async def test_a_key_that_secrets_need_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caring, "SOON_S", 3600.0)
    async with cluster() as nodes:
        a = await add_node(nodes, "a", key_file=key_file(tmp_path))
        old = a.mesh.status().keys[0]
        sealed = a.shared.seal("secret")
        a.shared.workers.add("w", "api", WorkerSpec(url="grpc://x:1", sealed_key=sealed))
        report = await a.mesh.keyring("install", make_key())
        await a.mesh.keyring("use", next(key for key in report.keys if key != old))
        with pytest.raises(MeshError, match="1 API keys of workers are sealed"):
            await a.mesh.keyring("remove", old)
        assert a.shared.open_secret(sealed) == "secret"
        await a.mesh.keyring("remove", old, force=True)
        assert a.shared.open_secret(sealed) is None
