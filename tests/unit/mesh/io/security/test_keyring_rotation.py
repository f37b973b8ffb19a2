import errno
import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from smg_mesh.io.security.keyring import Keyring, KeyringError, KeyringUnsavedError
from smg_mesh.io.security.rejected import Rejected
from smg_mesh.io.security.ring_key import RingKey, make_key, parse_key
from smg_mesh.swim import wire
from smg_mesh.swim.messages import Gossip, Packet


def packet_of(name: str) -> bytes:
    return wire.encode(Packet(wire.sender_tag(name), 1 << 50, 0, bytes(16), Gossip()))


PACKET = packet_of("a")


def new_key() -> RingKey:
    return parse_key(make_key())


@pytest.fixture
def one() -> RingKey:
    return new_key()


@pytest.fixture
def two() -> RingKey:
    return new_key()


@pytest.fixture
def key_file(tmp_path: Path, one: RingKey) -> Path:
    path = tmp_path / "mesh.key"
    path.write_text(one.secret.hex())
    path.chmod(0o600)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state" / "node"


def opens(keyring: Keyring, datagram: bytes) -> bool:
    try:
        return bool(keyring.open(datagram))
    except Rejected:
        return False


def test_a_rotation_never_leaves_anybody_out(one: RingKey, two: RingKey) -> None:
    members = {name: Keyring([one], "blue") for name in ("a", "b", "c")}

    def all_hear_all() -> bool:
        return all(
            opens(receiver, sender.seal(packet_of(name)))
            for name, sender in members.items()
            for receiver in members.values()
        )

    steps: tuple[Callable[[Keyring], bool], ...] = (
        lambda keyring: keyring.install(two.secret),
        lambda keyring: keyring.use(two.fingerprint),
        lambda keyring: keyring.remove(one.fingerprint),
    )
    for step in steps:
        for keyring in members.values():
            assert step(keyring)
            assert all_hear_all()
        for keyring in members.values():
            assert not step(keyring)  # once more changes nothing
            assert all_hear_all()
    assert members["a"].fingerprints() == (two.fingerprint, (two.fingerprint,))
    assert not opens(members["a"], Keyring([one], "blue").seal(PACKET))


def test_a_removed_key_opens_nothing_even_for_senders_known_before(
    one: RingKey, two: RingKey
) -> None:
    sender, receiver = Keyring([one], "blue"), Keyring([two, one], "blue")
    assert opens(receiver, sender.seal(PACKET))
    receiver.remove(one.fingerprint)
    with pytest.raises(Rejected, match="key"):
        receiver.open(sender.seal(PACKET))
    receiver.install(one.secret)
    assert opens(receiver, sender.seal(PACKET))


def test_a_replay_is_refused_across_a_change_of_keys(one: RingKey, two: RingKey) -> None:
    sender, receiver = Keyring([one], "blue"), Keyring([one, two], "blue")
    datagram = sender.seal(PACKET)
    assert opens(receiver, datagram)
    receiver.use(two.fingerprint)
    with pytest.raises(Rejected, match="replay"):
        receiver.open(datagram)


def test_the_primary_is_shown_first(one: RingKey, two: RingKey) -> None:
    keyring = Keyring([one, two], "blue")
    assert keyring.fingerprints() == (one.fingerprint, (one.fingerprint, two.fingerprint))
    assert keyring.use(f" {two.fingerprint.upper()} ")
    assert keyring.fingerprints().all == (two.fingerprint, one.fingerprint)
    assert keyring.keys() == (two.secret, one.secret)


def test_steps_that_would_cut_us_off_are_refused(one: RingKey, two: RingKey) -> None:
    keyring = Keyring([one], "blue")
    with pytest.raises(KeyringError, match="use another key first"):
        keyring.remove(one.fingerprint)
    with pytest.raises(KeyringError, match="install it first"):
        keyring.use(two.fingerprint)
    with pytest.raises(KeyringError, match="32 bytes"):
        keyring.install(b"short")
    assert not keyring.remove(two.fingerprint)
    for _ in range(7):
        assert keyring.install(new_key().secret)
    assert not keyring.install(one.secret)
    with pytest.raises(KeyringError, match="8 keys already"):
        keyring.install(two.secret)
    assert len(keyring.keys()) == 8


def test_two_keys_of_one_fingerprint_cannot_be_in_one_ring(one: RingKey, two: RingKey) -> None:
    keyring = Keyring([one], "blue")
    twin = RingKey(two.secret)
    object.__setattr__(twin, "id", one.id)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("smg_mesh.io.security.keyring.RingKey", lambda secret: twin)
        with pytest.raises(KeyringError, match="fingerprint"):
            keyring.install(two.secret)


def test_an_insecure_node_has_nothing_to_rotate(one: RingKey) -> None:
    keyring = Keyring.insecure("blue")
    steps: tuple[Callable[[], bool], ...] = (
        lambda: keyring.install(one.secret),
        lambda: keyring.use(one.fingerprint),
        lambda: keyring.remove(one.fingerprint),
    )
    for step in steps:
        with pytest.raises(KeyringError, match="insecure"):
            step()
    assert keyring.fingerprints() == ("", ())
    assert keyring.keys() == ()
    assert not keyring.encrypted


def test_a_rotation_survives_a_restart(
    key_file: Path, folder: Path, one: RingKey, two: RingKey
) -> None:
    keyring = Keyring.load(key_file, folder, "blue")
    assert not (folder / "keyring").exists()
    keyring.install(two.secret)
    assert Keyring.load(key_file, folder, "blue").keys() == (one.secret, two.secret)
    keyring.use(two.fingerprint)
    assert Keyring.load(key_file, folder, "blue").keys() == (two.secret, one.secret)
    keyring.remove(one.fingerprint)
    again = Keyring.load(key_file, folder, "blue")
    assert again.keys() == (two.secret,)
    assert again.warnings == ()
    assert stat.S_IMODE((folder / "keyring").stat().st_mode) == 0o600
    assert [path.name for path in folder.iterdir()] == ["keyring"]
    assert Keyring.from_file(key_file, "blue").keys() == (one.secret,)


def test_a_changed_key_file_wins_over_the_rotation(
    key_file: Path, folder: Path, one: RingKey, two: RingKey
) -> None:
    Keyring.load(key_file, folder, "blue").install(two.secret)
    third = new_key()
    key_file.write_text(third.secret.hex())
    keyring = Keyring.load(key_file, folder, "blue")
    assert keyring.keys() == (third.secret,)
    assert keyring.warnings == ()
    keyring.install(two.secret)
    assert Keyring.load(key_file, folder, "blue").keys() == (third.secret, two.secret)
    key_file.write_text(one.secret.hex())  # back to the first file: that rotation is gone
    assert Keyring.load(key_file, folder, "blue").keys() == (one.secret,)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: b"\xff" * 100,
        lambda content: b"[" * 5000,
        lambda content: content.replace(b'"version": 1', b'"version": 2'),
        lambda content: json.dumps({**json.loads(content), "keys": []}).encode(),
        lambda content: json.dumps({**json.loads(content), "keys": ["x"]}).encode(),
        lambda content: json.dumps(
            {**json.loads(content), "keys": json.loads(content)["keys"] * 2}
        ).encode(),
        lambda content: json.dumps(
            {**json.loads(content), "keys": [new_key().secret.hex() for _ in range(9)]}
        ).encode(),
        lambda content: content + b" " * 70_000,
    ],
)
def test_a_damaged_rotation_is_warned_about_and_the_key_file_counts(
    damage: Callable[[bytes], bytes], key_file: Path, folder: Path, one: RingKey, two: RingKey
) -> None:
    Keyring.load(key_file, folder, "blue").install(two.secret)
    kept = folder / "keyring"
    kept.write_bytes(damage(kept.read_bytes()))
    keyring = Keyring.load(key_file, folder, "blue")
    assert keyring.keys() == (one.secret,)
    (warning,) = keyring.warnings
    assert str(kept) in warning
    assert two.secret.hex() not in warning


def test_a_full_disk_changes_nothing_and_says_so(
    key_file: Path, folder: Path, one: RingKey, two: RingKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyring = Keyring.load(key_file, folder, "blue")
    keyring.install(two.secret)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("smg_mesh.io.peer_snapshot.os.fsync", full)
    steps: tuple[Callable[[], bool], ...] = (
        lambda: keyring.install(new_key().secret),
        lambda: keyring.use(two.fingerprint),
        lambda: keyring.remove(two.fingerprint),
    )
    for step in steps:
        with pytest.raises(KeyringUnsavedError, match="No space left") as caught:
            step()
        assert isinstance(caught.value, OSError)
        assert str(folder) in str(caught.value)
    assert keyring.keys() == (one.secret, two.secret)
    monkeypatch.undo()
    assert Keyring.load(key_file, folder, "blue").keys() == (one.secret, two.secret)
    assert [path.name for path in folder.iterdir()] == ["keyring"]


def test_a_folder_that_cannot_be_made_is_no_crash(key_file: Path, two: RingKey) -> None:
    keyring = Keyring.load(key_file, key_file / "below-a-file", "blue")
    with pytest.raises(KeyringUnsavedError):
        keyring.install(two.secret)
    assert len(keyring.keys()) == 1
    assert str(key_file) in keyring.warnings[0]
