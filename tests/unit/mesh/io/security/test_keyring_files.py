import base64
import os
from pathlib import Path

import pytest

from smg_mesh.io.security.key_files import KeyFileError, read_key_file
from smg_mesh.io.security.keyring import Keyring
from smg_mesh.io.security.ring_key import KEY_BYTES, RingKey, make_key, parse_key

ONE = bytes(range(32))
TWO = bytes(range(1, 33))


def key_file(tmp_path: Path, text: str | bytes, mode: int = 0o600) -> Path:
    path = tmp_path / "mesh.key"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)
    return path


def test_a_made_key_can_be_read_and_is_never_the_same(tmp_path: Path) -> None:
    made = [make_key() for _ in range(8)]
    assert len(set(made)) == 8
    keyring = Keyring.from_file(key_file(tmp_path, "\n".join(made)), "blue")
    assert keyring.keys() == tuple(base64.b64decode(line) for line in made)
    assert set(map(len, keyring.keys())) == {KEY_BYTES}


def test_keys_may_be_base64_or_hexadecimal_with_comments_between(tmp_path: Path) -> None:
    text = (
        "\ufeff# the keyring of blue\r\n\r\n"
        f"  {base64.b64encode(ONE).decode()}   # first, so it encrypts\r\n"
        f"{TWO.hex().upper()}\n"
    )
    keyring = Keyring.from_file(key_file(tmp_path, text), "blue")
    assert keyring.keys() == (ONE, TWO)
    assert keyring.encrypted
    assert keyring.warnings == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", ": 0 keys, where 1 to 8 may be"),
        ("# nothing\n", ": 0 keys"),
        ("\n".join(make_key() for _ in range(9)), ": 9 keys"),
        ("# x\n" + ONE.hex() + "\nhunter2\n", ", line 3: neither base64 nor hexadecimal"),
        (ONE.hex()[:-2], ", line 1: "),
        (base64.b64encode(ONE[:-1]).decode(), ", line 1: a key has 32 bytes, not 31"),
        (base64.b64encode(ONE).decode() + "!", ", line 1: neither"),
        ("ключ", ", line 1: neither"),
        (ONE.hex() + "\n\n" + base64.b64encode(ONE).decode(), ", line 3: the key of line 1 again"),
        (b"\xff\xfe\x00", ": no text"),
        (b"#" * 70_000, ": larger than 65536 bytes"),
    ],
)
def test_a_bad_file_is_named_with_its_line_and_never_quoted(
    tmp_path: Path, text: str | bytes, says: str
) -> None:
    path = key_file(tmp_path, text)
    with pytest.raises(KeyFileError) as caught:
        read_key_file(path)
    assert str(caught.value).startswith(f"{path}{says}")
    assert "hunter2" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(KeyFileError, match=str(path)):
            read_key_file(path)


@pytest.mark.parametrize(("mode", "warned"), [(0o600, 0), (0o400, 0), (0o640, 1), (0o604, 1)])
def test_a_file_that_others_can_read_is_warned_about(
    tmp_path: Path, mode: int, warned: int
) -> None:
    path = key_file(tmp_path, make_key(), mode)
    warnings = Keyring.from_file(path, "blue").warnings
    assert len(warnings) == warned
    assert all(f"{path}: " in warning and f"{mode:04o}" in warning for warning in warnings)


def test_a_pipe_is_a_key_file_too(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, make_key().encode())
        os.close(writing)
        keyring = Keyring.from_file(Path(f"/dev/fd/{reading}"), "blue")
    finally:
        os.close(reading)
    assert len(keyring.keys()) == 1
    assert keyring.warnings == ()


def test_a_key_does_not_show_itself() -> None:
    key = RingKey(ONE)
    assert ONE.hex() not in repr(key)
    assert repr(ONE) not in repr(key)
    assert key.fingerprint == key.id.hex()
    with pytest.raises(ValueError, match="neither") as caught:
        parse_key("topsecret")
    assert "topsecret" not in str(caught.value)
