"""Whole members with real sockets, in one process: joining, dying, leaving, coming back."""

import asyncio
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from smg_mesh.io import assembly, effect_listener
from smg_mesh.io.discovery import seed_search as seeds
from smg_mesh.io.discovery.resolver import LOOKUP_TIMEOUT_S, Resolver
from smg_mesh.io.stream_sessions import JOIN_MS
from smg_mesh.mesh import AskError
from support.mesh.mesh_cluster import (
    agree,
    cluster,
    free_port,
    key_file,
    kinds,
    make_mesh,
    states,
    until,
)

# ── Joining ──────────────────────────────────────────────────────────────────


async def test_five_members_find_each_other_through_one_seed(tmp_path: Path) -> None:
    key = key_file(tmp_path)
    async with cluster() as nodes:
        seed = await nodes.add("seed", key_file=key)
        others = [await nodes.add(f"node-{n}", seed, key_file=key) for n in range(4)]
        everybody = [seed, *others]
        await until(lambda: agree(everybody))
        await until(lambda: len({mesh.status().digest for mesh in everybody}) == 1)
        await until(lambda: all(mesh.status().joined for mesh in everybody))
        assert [mesh.ready() for mesh in everybody] == [None] * 5
        assert all(mesh.status().encrypted for mesh in everybody)
        assert [kinds(mesh, "node-0").count("member_up") for mesh in [seed, *others[1:]]] == [1] * 4
        counted = seed.counters()
        assert counted[("datagrams_in", "")] > 0
        assert not [key for key in counted if key[0] == "refused"]


async def test_a_seed_that_starts_late_is_found_whatever_the_backoff_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(seeds, "BACKOFF_MIN_S", 3600.0)
    monkeypatch.setattr(seeds, "BACKOFF_MAX_S", 3600.0)
    port = free_port()
    async with cluster() as nodes:
        early = await nodes.add("early", f"127.0.0.1:{port}", join_grace_s=3600)
        await until(lambda: early.status().seeds[0].error)
        assert early.ready() == "joining: no seed has answered yet"
        seed = await nodes.add("seed", listen_port=port)
        await until(lambda: agree([seed, early]) and early.status().joined)
        await until(lambda: early.ready() is None)


async def test_the_second_seed_serves_at_once_although_the_first_is_dead() -> None:
    async with cluster() as nodes:
        seed = await nodes.add("seed")
        new = await nodes.add("new", f"127.0.0.1:{free_port()}", "192.0.2.254:7946", seed)
        took_s = await until(lambda: agree([seed, new]) and new.status().joined)
        assert took_s < JOIN_MS / 1000  # the first one's deadline was not waited for


async def test_members_that_name_each_other_and_themselves_meet() -> None:
    ports = [free_port() for _ in range(3)]
    everybody = [f"127.0.0.1:{port}" for port in ports]
    async with cluster() as nodes:
        meshes = [
            await nodes.add(f"node-{n}", *everybody, listen_port=port)
            for n, port in enumerate(ports)
        ]
        await until(lambda: agree(meshes))
        own = [[seed.ourselves for seed in mesh.status().seeds] for mesh in meshes]
        assert own == [[n == m for m in range(3)] for n in range(3)]


async def test_a_member_whose_only_seed_is_itself_is_ready() -> None:
    port = free_port()
    async with cluster() as nodes:
        alone = await nodes.add(
            "alone", f"localhost:{port}", listen_host="0.0.0.0", listen_port=port
        )
        await until(lambda: alone.ready() is None, patience_s=10)
        assert not alone.status().joined


async def test_seeds_can_be_added_to_a_running_member() -> None:
    async with cluster() as nodes:
        a, b = await nodes.add("a"), await nodes.add("b")
        with pytest.raises(ValueError, match="names no host"):
            b.join([""])
        b.join([str(a.address)])
        await until(lambda: agree([a, b]))


async def test_two_islands_become_one_through_a_common_member() -> None:
    async with cluster() as nodes:
        a, x = await nodes.add("a"), await nodes.add("x")
        b, y = await nodes.add("b", a), await nodes.add("y", x)
        await until(lambda: agree([a, b]) and agree([x, y]))
        y.join([str(a.address)])
        await until(lambda: agree([a, b, x, y]))


async def test_ipv6_members_talk_too(tmp_path: Path) -> None:
    key = key_file(tmp_path)
    async with cluster() as nodes:
        a = await nodes.add("a", listen_host="::1", key_file=key)
        assert str(a.address).startswith("[::1]:")
        b = await nodes.add("b", a, listen_host="::1", key_file=key)
        await until(lambda: agree([a, b]) and b.status().joined)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_a_member_on_every_address_talks_to_either_family(tmp_path: Path, host: str) -> None:
    key = key_file(tmp_path)
    async with cluster() as nodes:
        a = await nodes.add("a", listen_host="::", advertise=host, key_file=key)
        assert a.address.host == host
        b = await nodes.add("b", a, listen_host=host, key_file=key)
        await until(lambda: agree([a, b]) and b.status().joined and a.status().joined)


# ── Names ────────────────────────────────────────────────────────────────────


def name_servers(monkeypatch: pytest.MonkeyPatch, look_up: object) -> None:
    """Let all members of this test ask `look_up` instead of the system."""
    monkeypatch.setattr(assembly, "Resolver", lambda rng: Resolver(rng, hosts=look_up))  # type: ignore[arg-type]  # whatever the test gives


async def test_dead_name_servers_hold_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    def hang(host: str) -> Sequence[str]:
        release.wait(60)
        return []

    name_servers(monkeypatch, hang)
    try:
        async with cluster() as nodes:
            seed = await nodes.add("seed")
            lost = await nodes.add("lost", "no-such-host:7946", "nor-that", seed)
            took_s = await until(lambda: agree([seed, lost]) and lost.status().joined)
            assert took_s < LOOKUP_TIMEOUT_S
            await until(lambda: lost.status().seeds[0].error)
            assert "name servers do not answer" in lost.status().seeds[0].error
    finally:
        release.set()


async def test_a_name_that_comes_late_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, list[str]] = {}

    def look_up(host: str) -> Sequence[str]:
        if host not in known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return known[host]

    name_servers(monkeypatch, look_up)
    async with cluster() as nodes:
        seed = await nodes.add("seed")
        new = await nodes.add("new", f"seed.example:{seed.address.port}")
        await until(lambda: new.status().seeds[0].error)
        known["seed.example"] = ["127.0.0.1"]
        await until(lambda: agree([seed, new]))


# ── Dying, leaving, coming back ──────────────────────────────────────────────


async def test_a_crash_is_noticed_and_nobody_else_is_accused() -> None:
    async with cluster() as nodes:
        a = await nodes.add("a")
        b, c, d = [await nodes.add(name, a) for name in "bcd"]
        await until(lambda: agree([a, b, c, d]))
        await nodes.crash(d)
        await until(lambda: all(states(mesh)["d"] == "dead" for mesh in (a, b, c)))
        for mesh in (a, b, c):
            assert kinds(mesh, "d")[-1] == "member_down"
            others = {"a", "b", "c"} - {mesh.name}
            assert all(kinds(mesh, name) == ["member_up"] for name in others)
        (down,) = [event for event in a.events() if event.kind == "member_down"]
        assert down.detail["why"]
        assert int(down.detail["heard_ms_ago"]) > 0
        with pytest.raises(AskError, match="is gone"):
            await a.ask("d", "topic", b"")


async def test_a_goodbye_is_heard_by_all_and_never_a_death() -> None:
    async with cluster() as nodes:
        a = await nodes.add("a")
        b, c = [await nodes.add(name, a) for name in "bc"]
        await until(lambda: agree([a, b, c]))
        c.set_meta(leaving=True)
        await until(lambda: all(m.meta.get("leaving") for m in a.members() if m.name == "c"))
        assert states(a)["c"] == "alive"
        await nodes.leave(c)
        await until(lambda: states(a)["c"] == states(b)["c"] == "left")
        for mesh in (a, b):
            assert "member_suspect" not in kinds(mesh, "c")
            assert "member_down" not in kinds(mesh, "c")


async def test_the_same_name_returns_at_another_port_and_was_never_dead(tmp_path: Path) -> None:
    async with cluster() as nodes:
        a = await nodes.add("a")
        b = await nodes.add("b", a)
        old = await nodes.add("c", a, data_dir=tmp_path)
        await until(lambda: agree([a, b, old]))
        await nodes.crash(old)
        new = await nodes.add("c", a, data_dir=tmp_path)
        assert new.boot > old.boot
        assert new.address != old.address

        def taken_over() -> bool:
            rows = [m for mesh in (a, b) for m in mesh.members() if m.name == "c"]
            return all(
                (m.boot, m.address, m.state) == (new.boot, str(new.address), "alive") for m in rows
            )

        await until(taken_over)
        await until(lambda: agree([a, b, new]))
        assert "member_down" not in kinds(a, "c")


@pytest.mark.parametrize("encrypted", [False, True])
async def test_a_stranger_under_a_name_that_is_taken_is_told_and_starts_in_vain_again_and_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, encrypted: bool
) -> None:
    keys: dict[str, Any] = {"key_file": key_file(tmp_path)} if encrypted else {}
    async with cluster() as nodes, asyncio.TaskGroup() as group:
        a = await nodes.add("a", **keys)
        first = await nodes.add("twin", a, **keys)
        await until(lambda: agree([a, first]))
        boot = first.boot
        taken = (
            f"the name 'twin' is taken: a node that lives at {first.address} has it;"
            " give this one a name of its own (--name) and start it again"
        )
        for start in (1, 2, 3):  # with a data dir of its own, as a service that is started again
            second = make_mesh("twin", a, data_dir=tmp_path / "second", **keys)
            await second.start()
            running = group.create_task(second.run())
            await until(second.superseded.is_set)
            assert second.ready() == "another process has this name"
            assert "superseded" in kinds(second, "twin")
            assert caplog.messages.count(taken) == start
            await second.leave()
            await running
        assert (first.boot, first.superseded.is_set()) == (boot, False)
        assert kinds(a, "twin") == ["member_up"]
        await until(lambda: agree([a, first]))


async def test_a_member_without_a_data_dir_returns_at_another_port_after_a_crash() -> None:
    async with cluster() as nodes:
        a = await nodes.add("a")
        old = await nodes.add("c", a)
        await until(lambda: agree([a, old]))
        await nodes.crash(old)
        new = await nodes.add("c", a)
        assert new.boot < old.boot

        def taken_over() -> bool:
            (row,) = [member for member in a.members() if member.name == "c"]
            return (row.boot, row.address) == (new.boot, str(new.address))

        await until(lambda: taken_over() and agree([a, new]))
        assert new.boot > old.boot
        assert not new.superseded.is_set()


async def test_a_process_that_ran_long_is_told_of_another_that_keeps_its_name(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(effect_listener, "STARTING_MS", 0)
    monkeypatch.setattr(assembly, "first_boot", lambda wall_ms, rng, *, kept: wall_ms << 16)
    async with cluster() as nodes:
        a = await nodes.add("a")
        old = await nodes.add("twin", a)
        await until(lambda: agree([a, old]))
        new = make_mesh("twin", a)
        await new.start()
        del nodes.meshes["twin"]
        nodes.run(new)
        await until(old.superseded.is_set)
        assert (
            f"another process at {new.address} goes on under this node's name 'twin':"
            " this one steps down; two machines need two names (--name)"
        ) in caplog.messages
        await old.leave()
        await until(lambda: agree([a, new]))
        assert not new.superseded.is_set()


async def test_a_member_finds_the_others_again_after_all_seeds_vanished(tmp_path: Path) -> None:
    async with cluster() as nodes:
        seed = await nodes.add("seed")
        b = await nodes.add("b", seed)
        c = await nodes.add("c", seed, data_dir=tmp_path)
        await until(lambda: agree([seed, b, c]))
        await nodes.crash(c)
        await nodes.leave(seed)
        again = await nodes.add("c", f"127.0.0.1:{seed.address.port}", data_dir=tmp_path)
        await until(lambda: agree([b, again]) and again.status().joined)


async def test_who_lost_everybody_is_found_by_whoever_comes_to_the_seeds_address() -> None:
    port = free_port()
    async with cluster() as nodes:
        seed = await nodes.add("seed", listen_port=port)
        b = await nodes.add("b", seed)
        await until(lambda: agree([seed, b]))
        await nodes.crash(seed)
        await until(lambda: states(b)["seed"] == "dead")
        other = await nodes.add("other", listen_port=port)
        await until(lambda: agree([b, other]))
        b.forget("seed")
        assert "seed" not in states(b)
        with pytest.raises(LookupError):
            b.forget("seed")
        with pytest.raises(ValueError, match="other"):
            b.forget("other")
