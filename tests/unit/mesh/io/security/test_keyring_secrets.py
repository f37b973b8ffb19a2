import pytest

from smg_mesh.io.security.keyring import Keyring
from smg_mesh.io.security.rejected import Rejected
from smg_mesh.io.security.ring_key import make_key, parse_key

ONE = parse_key(make_key())
TWO = parse_key(make_key())
SECRET = b"sk-a-very-secret-key"


def reason(keyring: Keyring, sealed: bytes) -> str:
    with pytest.raises(Rejected) as caught:
        keyring.open_secret(sealed)
    return caught.value.reason


def test_every_member_can_read_a_secret_and_disks_cannot_show_it() -> None:
    sealed = Keyring([ONE], "blue").seal_secret(SECRET)
    assert SECRET not in sealed
    assert Keyring([TWO, ONE], "blue").open_secret(sealed) == SECRET
    assert Keyring([ONE], "blue").open_secret(Keyring([ONE], "blue").seal_secret(b"")) == b""


def test_a_secret_never_looks_the_same() -> None:
    keyring = Keyring([ONE], "blue")
    assert len({keyring.seal_secret(SECRET) for _ in range(50)}) == 50


def test_a_secret_of_another_cluster_or_key_stays_shut() -> None:
    sealed = Keyring([ONE], "blue").seal_secret(SECRET)
    assert reason(Keyring([ONE], "green"), sealed) == "tag"
    assert reason(Keyring([TWO], "blue"), sealed) == "key"
    assert reason(Keyring.insecure("blue"), sealed) == "sealed"


def test_no_bit_of_a_sealed_secret_may_change() -> None:
    keyring = Keyring([ONE], "blue")
    sealed = keyring.seal_secret(SECRET)
    for bit in range(8 * len(sealed)):
        changed = bytearray(sealed)
        changed[bit // 8] ^= 1 << bit % 8
        assert reason(keyring, bytes(changed)) in ("wire", "plain", "key", "tag")
    for length in range(len(sealed)):
        assert reason(keyring, sealed[:length]) in ("wire", "tag")


def test_an_insecure_node_only_marks_and_a_secure_one_does_not_believe_the_mark() -> None:
    plain = Keyring.insecure("blue")
    assert plain.open_secret(plain.seal_secret(SECRET)) == SECRET
    assert reason(Keyring([ONE], "blue"), plain.seal_secret(SECRET)) == "plain"
    assert reason(plain, b"") == "wire"
    assert reason(plain, b"\7abc") == "wire"
