import errno
import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.io import peer_snapshot as snapshot
from smg_mesh.io.atomic_files import write_durably
from smg_mesh.io.counters import Counters
from smg_mesh.io.errors import MeshError
from smg_mesh.io.peer_snapshot import (
    PEERS_MAX,
    DataDir,
    Kept,
    KeptPeer,
    Memory,
    SnapshotError,
    decode_kept,
    encode_kept,
    seeds_of,
)
from smg_mesh.swim.messages import Address

BOOT = 1_763_000_000_000 << 16


def peer(number: int, seen_ms: int = 1) -> KeptPeer:
    return KeptPeer(f"node-{number}", Address("10.0.0.1", 7000 + number), seen_ms)


def memory(folder: Path | None, label: str = "test") -> tuple[Memory, Counters]:
    counters = Counters()
    return Memory(folder, label=label, counters=counters), counters


# ── The file ─────────────────────────────────────────────────────────────────


def test_what_is_written_is_read_again() -> None:
    kept = Kept(BOOT, "test", (peer(1, 9), KeptPeer("six", Address("fd00::1", 7946), 5)))
    assert decode_kept(encode_kept(kept)) == kept


def test_the_newest_256_peers_are_kept_newest_first() -> None:
    kept = decode_kept(encode_kept(Kept(1, "", tuple(peer(n, seen_ms=n) for n in range(300)))))
    assert [one.seen_ms for one in kept.peers] == list(range(299, 299 - PEERS_MAX, -1))
    assert seeds_of(kept, seeds_max=2) == [peer(299).address, peer(298).address]


def test_what_a_later_version_adds_is_skipped() -> None:
    content = b'{"version":1,"boot":5,"roster":{"id":"x"},"peers":[{"name":"a","address":"10.0.0.1:1","seen_ms":2,"zone":"z"}]}'
    assert decode_kept(content) == Kept(5, "", (KeptPeer("a", Address("10.0.0.1", 1), 2),))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"version":2,"boot":5}',
        b'{"version":1,"boot":-1}',
        b'{"version":1,"boot":9223372036854775808}',
        b'{"version":1,"boot":5,"peers":[{"name":"a","address":"seed:1","seen_ms":2}]}',
        b'{"version":1,"boot":5,"peers":[{"name":"a","address":"10.0.0.1","seen_ms":2}]}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_a_damaged_file_is_an_error_of_its_own(content: bytes) -> None:
    with pytest.raises(SnapshotError):
        decode_kept(content)


@given(
    st.binary(max_size=200)
    | st.integers(0, 200).map(lambda cut: encode_kept(Kept(BOOT, "x", (peer(1),)))[:cut])
)
def test_any_bytes_are_a_snapshot_or_a_snapshot_error(content: bytes) -> None:
    try:
        decode_kept(content)
    except SnapshotError:
        return


# ── The folder ───────────────────────────────────────────────────────────────


def test_a_folder_belongs_to_one_node(tmp_path: Path) -> None:
    first, second = DataDir(tmp_path / "deep" / "er"), DataDir(tmp_path / "deep" / "er")
    assert first.open() == Kept()
    with pytest.raises(MeshError, match="another node uses the data dir"):
        second.open()
    first.save(Kept(7))
    first.close()
    assert second.open() == Kept(7)
    second.close()


def test_a_file_is_replaced_whole_and_privately(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_durably(path, b"old")
    write_durably(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_durably(path, b"old")

    def full(descriptor: int, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        write_durably(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_the_disk_takes_in_pieces_arrives_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: real(descriptor, content[:3]))
    write_durably(tmp_path / "file", b"0123456789")
    assert (tmp_path / "file").read_bytes() == b"0123456789"


# ── The memory ───────────────────────────────────────────────────────────────


async def test_the_next_life_knows_boot_and_peers_of_the_last(tmp_path: Path) -> None:
    first, _ = memory(tmp_path)
    assert await first.open() == Kept(label="test")
    await first.keep_boot(BOOT)
    first.remember([peer(1), peer(2)], gone=[])
    first.remember([peer(2, seen_ms=5)], gone=["node-1"])
    await first.close()

    second, counters = memory(tmp_path)
    assert await second.open() == Kept(BOOT, "test", (peer(2, seen_ms=5),))
    assert counters.all() == {}
    await second.close()


async def test_another_cluster_gets_the_boot_and_not_the_peers(tmp_path: Path) -> None:
    first, _ = memory(tmp_path)
    await first.open()
    await first.keep_boot(BOOT)
    first.remember([peer(1)], gone=[])
    await first.close()

    second, _ = memory(tmp_path, label="other")
    assert await second.open() == Kept(BOOT, "other", ())
    await second.close()


async def test_the_boot_is_on_the_disk_before_it_is_used(tmp_path: Path) -> None:
    first, _ = memory(tmp_path)
    await first.open()
    await first.keep_boot(BOOT)
    assert decode_kept((tmp_path / "peers.json").read_bytes()).boot == BOOT
    await first.close()


async def test_a_damaged_file_is_reported_and_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "peers.json").write_bytes(b"not json")
    kept, counters = memory(tmp_path)
    assert await kept.open() == Kept(label="test")
    assert counters.get("snapshot_failed") == 1
    assert "cannot be read" in caplog.text
    await kept.keep_boot(BOOT)
    await kept.close()
    assert decode_kept((tmp_path / "peers.json").read_bytes()).boot == BOOT


async def test_a_full_disk_costs_one_warning_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kept, counters = memory(tmp_path)
    await kept.open()

    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(snapshot, "write_durably", full)
        await kept.keep_boot(BOOT)
        await kept.keep_boot(BOOT + 1)
    assert counters.get("snapshot_failed") == 2
    assert caplog.text.count("No space left") == 1
    await kept.keep_boot(BOOT + 2)
    assert counters.get("snapshot_saved") == 1
    await kept.close()


async def test_a_folder_that_cannot_be_made_is_lived_without(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_bytes(b"")
    kept, counters = memory(tmp_path / "file" / "data")
    assert await kept.open() == Kept(label="test")
    await kept.keep_boot(BOOT)
    await kept.close()
    assert counters.get("snapshot_failed") == 3
    assert len(caplog.records) == 1


async def test_a_disk_that_hangs_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    monkeypatch.setattr(snapshot, "SAVE_TIMEOUT_S", 0.01)
    kept, counters = memory(tmp_path)
    await kept.open()
    with monkeypatch.context() as patched:
        patched.setattr(snapshot, "write_durably", lambda *_: release.wait())
        for _ in range(3):
            await kept.keep_boot(BOOT)
    assert counters.get("snapshot_failed") == 3
    release.set()
    await kept.close()


async def test_without_a_folder_nothing_is_kept_and_nothing_fails() -> None:
    kept, counters = memory(None)
    assert await kept.open() == Kept(label="test")
    await kept.keep_boot(BOOT)
    await kept.close()
    assert counters.all() == {}


async def test_old_peers_are_kept_until_newer_ones_need_the_place() -> None:
    kept, _ = memory(None)
    kept.remember([peer(n, seen_ms=1) for n in range(PEERS_MAX)], gone=[])
    kept.remember([peer(1000, seen_ms=2)], gone=[])
    assert len(kept._peers) == PEERS_MAX
    assert "node-1000" in kept._peers
