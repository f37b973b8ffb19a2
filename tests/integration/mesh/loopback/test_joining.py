"""What a member accepts at its start, and whom it lets in."""

import asyncio
import errno
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from smg_mesh.io import peer_snapshot as snapshot
from smg_mesh.io.discovery import advertise
from smg_mesh.mesh import MeshError
from support.mesh.mesh_cluster import (
    agree,
    cluster,
    free_port,
    key_file,
    make_mesh,
    states,
    until,
)

# ── Starting ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"join": ("a:b:c",)}, "join"),
        ({"listen_host": "a b"}, "cannot listen on 'a b'"),
        ({"listen_host": "198.51.100.1"}, r"cannot listen on 198\.51\.100\.1"),
        ({"advertise": "0.0.0.0"}, "mesh.advertise"),
        ({"advertise": "a:b:c"}, "mesh.advertise"),
        ({"label": "a b"}, "mesh.label"),
        ({"meta": {"x": "y" * 600}}, "512"),
        ({"key_file": Path("/nowhere/mesh.key")}, "mesh-key: /nowhere"),
        ({"key_file": Path("/nowhere/mesh.key"), "insecure": True}, "contradict"),
    ],
)
async def test_what_cannot_be_is_said_at_the_start(options: dict[str, Any], words: str) -> None:
    with pytest.raises(MeshError, match=words):
        await make_mesh("a", **options).start()


async def test_a_name_that_is_none_is_said_at_the_start() -> None:
    with pytest.raises(MeshError, match="name 'A B'"):
        await make_mesh("A B").start()


@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_STREAM])
async def test_a_taken_port_is_said_with_its_number_and_nothing_stays_open(
    kind: socket.SocketKind,
) -> None:
    with socket.socket(socket.AF_INET, kind) as taken:
        port = free_port()
        taken.bind(("127.0.0.1", port))
        if kind is socket.SOCK_STREAM:
            taken.listen()
        with pytest.raises(MeshError, match=f"cannot listen on 127.0.0.1:{port}"):
            await make_mesh("a", listen_port=port).start()
    async with cluster() as nodes:
        assert (await nodes.add("a", listen_port=port)).address.port == port


async def test_one_data_dir_serves_one_node(tmp_path: Path) -> None:
    async with cluster() as nodes:
        first = await nodes.add("a", data_dir=tmp_path)
        with pytest.raises(MeshError, match="another node uses the data dir"):
            await make_mesh("b", data_dir=tmp_path).start()
        await nodes.leave(first)
        await nodes.add("b", data_dir=tmp_path)


@pytest.mark.parametrize("years", [(2040, 2026), (2026, 2026), (1970, 2026), (2026, 1970)])
async def test_boots_of_a_data_dir_grow_whatever_the_clock_shows(
    tmp_path: Path, years: tuple[int, int]
) -> None:
    boots = []
    for year in years:
        mesh = make_mesh("a", data_dir=tmp_path)
        mesh._wall_ms = lambda year=year: (year - 1970) * 31_557_600_000  # type: ignore[misc]  # a clock that is wrong
        await mesh.start()
        boots.append(mesh.boot)
        await mesh.stop()
    assert 1 <= (boots[1] >> 16) - (boots[0] >> 16) <= 16


async def test_a_full_disk_costs_the_memory_and_not_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(descriptor: int, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(snapshot, "SAVE_APART_S", 0.01)
    async with cluster() as nodes:
        a = await nodes.add("a")
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", full)
            b = await nodes.add("b", a, data_dir=tmp_path)
            await until(lambda: agree([a, b]))
            await until(lambda: b.counters().get(("snapshot_failed", ""), 0) >= 2)
        assert caplog.text.count("No space left on device") == 1
        await nodes.leave(b)
        again = await nodes.add("b", data_dir=tmp_path)
        await until(lambda: agree([a, again]))


async def test_every_address_means_the_one_of_the_route_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with cluster() as nodes:
        a = await nodes.add("a")
        b = await nodes.add("b", a, listen_host="0.0.0.0")
        assert b.address.host == "127.0.0.1"  # the way to its seed
        monkeypatch.setattr(advertise, "route_host", lambda to: None)
        c = await nodes.add("c", a, listen_host="0.0.0.0")
        assert c.address.host == "127.0.0.1"
        d = await nodes.add("d", a, advertise=f"localhost:{c.address.port + 1}")
        assert d.address.port == c.address.port + 1


# ── Who may not ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize("stranger", ["other key", "other label", "no key"])
async def test_strangers_change_nothing_and_are_counted(tmp_path: Path, stranger: str) -> None:
    key = key_file(tmp_path)
    kinds_of: dict[str, dict[str, Any]] = {
        "other key": {"key_file": key_file(tmp_path, "other.key")},
        "other label": {"key_file": key, "label": "other"},
        "no key": {},
    }
    options = kinds_of[stranger]
    reason = {"other key": "key", "other label": "tag", "no key": "plain"}[stranger]
    async with cluster() as nodes:
        a = await nodes.add("a", key_file=key)
        b = await nodes.add("b", a, key_file=key)
        await until(lambda: agree([a, b]))
        other = await nodes.add("x", a, **options)
        await until(lambda: a.counters().get(("refused", reason), 0) >= 2)
        await until(lambda: other.status().seeds[0].error)
        assert states(a) == states(b) == {"a": "alive", "b": "alive"}
        assert states(other) == {"x": "alive"}
        assert not other.status().joined


async def test_a_member_without_a_key_is_alone_and_says_so() -> None:
    with pytest.raises(MeshError, match=r"--mesh-key FILE.*--insecure-mesh"):
        await make_mesh("a", "127.0.0.1:1", insecure=False).start()
    closed = make_mesh("a", insecure=False, listen_port=7946)
    await closed.start()
    async with asyncio.TaskGroup() as group:
        group.create_task(closed.run())
        await asyncio.sleep(0)
        assert states(closed) == {"a": "alive"}
        status = closed.status()
        assert status.closed
        assert status.degraded == (
            "closed: no mesh key, so this node neither joins nor can be joined",
        )
        assert closed.ready() is None
        with pytest.raises(MeshError, match="closed"):
            closed.join(["127.0.0.1:1"])
        closed.set_meta(leaving=True)
        await closed.leave()


async def test_an_insecure_member_warns_again_and_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("smg_mesh.mesh.WARN_S", 0.01)
    async with cluster() as nodes:
        await nodes.add("a")
        await until(lambda: caplog.text.count("the mesh is insecure") >= 3)
