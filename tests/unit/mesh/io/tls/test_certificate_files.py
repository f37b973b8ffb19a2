"""An operator's own certificates: what is taken, what is refused, and taking new ones."""

import logging
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from smg_mesh.config import TlsFiles
from smg_mesh.io.errors import MeshError
from smg_mesh.io.streams import StreamError
from smg_mesh.io.tls import FileMaterial, TlsCredentials
from support.http.certificate_authority import Authority
from support.mesh.mesh_streams import LABEL, Node, derived, up
from support.state.exchanges import claims


@dataclass
class Clock:
    """Time that tests move."""

    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


class Folder:
    """The three files of one node."""

    def __init__(self, path: Path, clock: Clock) -> None:
        path.mkdir()
        self.files = TlsFiles(
            certificate=path / "node.crt", key=path / "node.key", authority=path / "ca.crt"
        )
        self._clock = clock

    def write(self, authority: Authority, *names: str) -> None:
        certificate, private = authority.issue(*names)
        self.put(certificate, private, authority.certificate)

    def put(self, certificate: bytes, private: bytes, authority: bytes) -> None:
        """Replace the files one by one, as tools do it."""
        for path, content in (
            (self.files.certificate, certificate),
            (self.files.key, private),
            (self.files.authority, authority),
        ):
            new = path.with_suffix(".new")
            new.write_bytes(content)
            os.replace(new, path)

    def material(self, name: str = "a") -> FileMaterial:
        return FileMaterial(self.files, name=name, label=LABEL, monotonic_s=self._clock)

    def credentials(self, name: str) -> TlsCredentials:
        return TlsCredentials(self.material(name), name=name, label=LABEL)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def members(tmp_path: Path, clock: Clock, authority: Authority) -> tuple[Folder, Folder]:
    folders = Folder(tmp_path / "a", clock), Folder(tmp_path / "b", clock)
    for name, folder in zip("ab", folders, strict=True):
        folder.write(authority, name, "mesh.test")
    return folders


async def test_certificates_of_one_authority_with_both_names_do(
    tmp_path: Path, clock: Clock
) -> None:
    one, other = members(tmp_path, clock, Authority("ca"))
    a = Node("a", one.credentials("a"), claims(2000, "l"))
    b = Node("b", other.credentials("b"), claims(2000, "r"))
    async with up(a, b):
        assert (await a.exchange_with(b)).name == "b"
        assert (await b.exchange_with(a, name=None)).name == "a"
    assert a.learned_rows[:2000] == b.rows


async def test_another_authority_is_refused(tmp_path: Path, clock: Clock) -> None:
    folder, stranger = Folder(tmp_path / "a", clock), Folder(tmp_path / "b", clock)
    folder.write(Authority("ca"), "a", "mesh.test")
    stranger.write(Authority("ca"), "b", "mesh.test")
    a, b = Node("a", folder.credentials("a")), Node("b", stranger.credentials("b"))
    c = Node("c", derived("c"))
    async with up(a, b, c):
        for other in (b, c):
            with pytest.raises(StreamError, match="does not share our mesh key or label"):
                await a.exchange_with(other)
            with pytest.raises(StreamError, match="does not share our mesh key or label"):
                await other.exchange_with(a)


async def test_another_mesh_of_the_same_authority_is_refused(tmp_path: Path, clock: Clock) -> None:
    authority = Authority("ca")
    one, _ = members(tmp_path, clock, authority)
    stranger = Folder(tmp_path / "s", clock)
    stranger.write(authority, "s", "mesh.other")
    source = FileMaterial(stranger.files, name="s", label="other", monotonic_s=clock)
    a = Node("a", one.credentials("a"), claims(2))
    s = Node("s", TlsCredentials(source, name="s", label="other"), claims(2), label="other")
    async with up(a, s):
        with pytest.raises(StreamError, match="does not prove to be a member of our mesh"):
            await a.exchange_with(s, name=None)
        with pytest.raises(StreamError, match="we of 'test'"):
            await s.exchange_with(a)
    assert a.learned_rows == s.learned_rows == []


# ── At the start ─────────────────────────────────────────────────────────────


def test_missing_names_are_named(tmp_path: Path, clock: Clock) -> None:
    folder = Folder(tmp_path / "a", clock)
    folder.write(Authority("ca"), "b", "c")
    with pytest.raises(MeshError, match=r"lacks the DNS name a and mesh\.test .*: b, c\)"):
        folder.material()
    folder.write(Authority("ca"))
    with pytest.raises(MeshError, match=r"names: none\)"):
        folder.material()


@pytest.mark.parametrize("which", ["certificate", "key", "authority"])
@pytest.mark.parametrize("content", [b"", b"garbage", b"-----BEGIN CERTIFICATE-----\n"])
def test_a_file_that_is_none_is_named(
    tmp_path: Path, clock: Clock, which: str, content: bytes
) -> None:
    folder, _ = members(tmp_path, clock, Authority("ca"))
    path: Path = getattr(folder.files, which)
    path.write_bytes(content)
    with pytest.raises(MeshError, match=str(path)):
        folder.material()
    path.unlink()
    with pytest.raises(MeshError, match=f"cannot read {path}: No such file"):
        folder.material()


def test_a_key_of_another_certificate_is_noticed(tmp_path: Path, clock: Clock) -> None:
    authority = Authority("ca")
    folder, _ = members(tmp_path, clock, authority)
    folder.files.key.write_bytes(authority.issue("a")[1])
    with pytest.raises(MeshError, match=r"node\.key is not the key of .*node\.crt"):
        folder.material()


# ── Later ────────────────────────────────────────────────────────────────────


def test_files_that_stay_are_the_same_material(tmp_path: Path, clock: Clock) -> None:
    folder, _ = members(tmp_path, clock, Authority("ca"))
    material = folder.material()
    first = material.read()
    for _ in range(5):
        clock.now_s += 10
        assert material.read() is first


def test_new_files_are_taken_within_a_second(tmp_path: Path, clock: Clock) -> None:
    authority = Authority("ca")
    folder, _ = members(tmp_path, clock, authority)
    material = folder.material()
    first = material.read()
    folder.write(authority, "a", "mesh.test")
    assert material.read() is first
    clock.now_s += 1
    second = material.read()
    assert second.certificate == folder.files.certificate.read_bytes() != first.certificate


@pytest.mark.parametrize("wrong", ["half", "names", "gone", "garbage"])
def test_files_that_will_not_do_are_not_taken_and_said_once(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture, wrong: str
) -> None:
    authority = Authority("ca")
    folder, _ = members(tmp_path, clock, authority)
    material = folder.material()
    first = material.read()
    certificate, private = authority.issue("a", "mesh.test")
    match wrong:
        case "half":
            folder.files.certificate.write_bytes(certificate)
        case "names":
            folder.put(*authority.issue("z"), authority.certificate)
        case "gone":
            folder.files.key.unlink()
        case _:
            folder.files.authority.write_bytes(b"garbage")
    with caplog.at_level(logging.WARNING, "smg_mesh"):
        for _ in range(4):
            clock.now_s += 1
            assert material.read() is first
    assert caplog.text.count("kept the old certificates") == 1
    folder.put(certificate, private, authority.certificate)
    clock.now_s += 1
    assert material.read().certificate == certificate


async def test_new_certificates_are_used_without_a_restart_and_old_ones_run_out(
    tmp_path: Path, clock: Clock
) -> None:
    """The authority changes too, as operators do it: trust both, show the new one, trust the new one."""
    old, new = Authority("old"), Authority("new")
    folders = members(tmp_path, clock, old)
    a = Node("a", folders[0].credentials("a"), claims(2, "l"))
    b = Node("b", folders[1].credentials("b"), claims(2, "r"))
    both = old.certificate + new.certificate
    async with up(a, b):
        await a.exchange_with(b)
        for issuer, trusted in ((old, both), (new, both), (new, new.certificate)):
            for name, folder in zip("ab", folders, strict=True):
                folder.put(*issuer.issue(name, "mesh.test"), trusted)
                clock.now_s += 1
                assert (await a.exchange_with(b)).name == "b"
                assert (await b.exchange_with(a)).name == "a"
        late = Folder(tmp_path / "late", clock)
        late.write(old, "late", "mesh.test")
        outsider = Node("late", late.credentials("late"))
        async with up(outsider):
            with pytest.raises(StreamError):
                await a.exchange_with(outsider)
            assert not await outsider.client.ping(a.address, "a", 1, deadline_ms=5000)
    assert a.client.open_channels == 0
