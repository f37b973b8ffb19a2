"""Members that ask each other, watch, and rotate their keys."""

import asyncio
import random
import socket
from pathlib import Path

import pytest

from smg_mesh.io.security.key_rotation import Operation
from smg_mesh.mesh import AskError, Mesh, MeshError, make_key
from support.mesh.mesh_cluster import (
    agree,
    cluster,
    key_file,
    kinds,
    make_mesh,
    states,
    until,
)


async def gossip_on(mesh: Mesh) -> None:
    """Wait until the member has probed ten times more."""
    probes = mesh.counters().get(("probe_ok", ""), 0)
    await until(lambda: mesh.counters().get(("probe_ok", ""), 0) > probes + 10)


# ── Talking ──────────────────────────────────────────────────────────────────


async def test_members_answer_each_other(tmp_path: Path) -> None:
    async def who(payload: bytes, caller: str) -> bytes:
        return payload + b" says " + caller.encode()

    async def never(payload: bytes, caller: str) -> bytes:
        await asyncio.sleep(3600)
        return b""

    key = key_file(tmp_path)
    async with cluster() as nodes:
        a = await nodes.add("a", key_file=key)
        b = await nodes.add("b", a, key_file=key)
        await until(lambda: agree([a, b]))
        for mesh in (a, b):
            mesh.answer("who", who)
            mesh.answer("never", never)
        assert await a.ask("b", "who", b"hello") == b"hello says a"
        assert await a.ask("a", "who", b"hello") == b"hello says a"
        for name in ("a", "b"):
            with pytest.raises(AskError) as unknown:
                await a.ask(name, "nothing", b"")
            assert unknown.value.code == "unknown"
            with pytest.raises(AskError) as slow:
                await a.ask(name, "never", b"", deadline_s=0.05)
            assert slow.value.code == "timeout"
        with pytest.raises(LookupError):
            await a.ask("nobody", "who", b"")
        with pytest.raises(ValueError, match="answered already"):
            a.answer("who", who)


async def test_meta_reaches_everybody_and_has_its_limit() -> None:
    async with cluster() as nodes:
        a = await nodes.add("a", meta={"zone": "z1", "weight": 3})
        b = await nodes.add("b", a)
        await until(lambda: agree([a, b]))
        a.set_meta(http="127.0.0.1:1", weight=4)
        wanted = {"zone": "z1", "weight": 4, "http": "127.0.0.1:1"}
        await until(lambda: any(m.name == "a" and m.meta == wanted for m in b.members()))
        with pytest.raises(ValueError, match="512"):
            a.set_meta(http="x" * 600)
        assert a.members()[0].meta == wanted


async def test_watchers_see_every_event_once_and_the_end() -> None:
    seen: list[tuple[int, str, str]] = []

    async def watch(mesh: Mesh, after: int) -> None:
        seen.extend([(one.id, one.kind, one.name) async for one in mesh.watch(after)])

    async with asyncio.TaskGroup() as group, cluster() as nodes:
        a = await nodes.add("a")
        group.create_task(watch(a, 0))
        b = await nodes.add("b", a)
        await until(lambda: agree([a, b]) and a.status().joined)
        await nodes.leave(b)
        await until(lambda: "member_left" in kinds(a, "b"))
        await nodes.leave(a)
    assert [number for number, _, _ in seen] == list(range(1, len(seen) + 1))
    assert {("member_up", "b"), ("joined", "a"), ("member_left", "b")} <= {one[1:] for one in seen}


async def test_what_nobody_started_says_so_and_stops_quietly() -> None:
    mesh = make_mesh("a")
    with pytest.raises(MeshError, match="not started"):
        mesh.members()
    await mesh.stop()
    started = make_mesh("a")
    await started.start()
    await started.leave()
    await started.stop()


async def test_being_cancelled_leaves_the_sockets_to_stop() -> None:
    mesh = make_mesh("a")
    await mesh.start()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(mesh.run())
        await asyncio.sleep(0.01)
        task.cancel()
    await mesh.stop()
    again = make_mesh("a", listen_port=mesh.address.port)
    await again.start()
    await again.stop()


async def test_garbage_on_both_ports_changes_nothing() -> None:
    noise = random.Random(5)
    async with cluster() as nodes:
        a = await nodes.add("a")
        b = await nodes.add("b", a)
        await until(lambda: agree([a, b]))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for _ in range(500):
                stranger.sendto(noise.randbytes(noise.randrange(0, 2000)), tuple(a.address))
        _, writer = await asyncio.open_connection(*a.address)
        writer.write(noise.randbytes(10_000))
        writer.close()
        await until(
            lambda: sum(n for (name, _), n in a.counters().items() if name == "refused") >= 400
        )
        assert agree([a, b])
        assert a.counters().get(("core_fault", ""), 0) == 0


# ── Keys ─────────────────────────────────────────────────────────────────────


async def test_keys_are_rotated_under_gossip_without_a_doubt(tmp_path: Path) -> None:
    key = key_file(tmp_path)
    async with cluster() as nodes:
        a = await nodes.add("a", key_file=key)
        others = [await nodes.add(name, a, key_file=key) for name in "bcd"]
        everybody = [a, *others]
        await until(lambda: agree(everybody))
        (old,) = a.status().keys
        report = await a.keyring("install", make_key())
        assert report.complete
        (new,) = set(report.keys) - {old}
        steps: list[tuple[Operation, str]] = [("use", new), ("remove", old)]
        for step, fingerprint in steps:
            await gossip_on(a)
            report = await others[0].keyring(step, fingerprint)
            assert report.complete
        assert {mesh.status().keys for mesh in everybody} == {(new,)}
        late = await nodes.add("late", a, key_file=key)
        await gossip_on(a)
        for mesh in everybody:
            assert {event.kind for event in mesh.events()} <= {
                "member_up",
                "joined",
                "keyring_changed",
            }
            assert sum(event.kind == "keyring_changed" for event in mesh.events()) == 3
        assert states(late) == {"late": "alive"}  # its only key was removed while it was away


async def test_a_step_that_not_all_can_take_is_refused(tmp_path: Path) -> None:
    key = key_file(tmp_path)
    async with cluster() as nodes:
        a = await nodes.add("a", key_file=key)
        b = await nodes.add("b", a, key_file=key)
        await until(lambda: agree([a, b]))
        report = await a.keyring("install", make_key())
        new = next(one for one in report.keys if one != report.primary)
        await nodes.crash(b)
        with pytest.raises(MeshError, match="b does not acknowledge"):
            await a.keyring("use", new)
        assert a.status().keys[0] == report.primary
        await a.keyring("use", new, force=True)
        assert a.status().keys[0] == new
        # Who was away takes the newer ring over as long as one key is common.
        again = await nodes.add("b", a, key_file=key)
        await until(lambda: agree([a, again]) and again.status().keys == a.status().keys)


async def test_an_insecure_member_has_no_keys_to_rotate() -> None:
    async with cluster() as nodes:
        a = await nodes.add("a")
        with pytest.raises(MeshError, match="insecure"):
            await a.keyring("list")
