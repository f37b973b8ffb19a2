import secrets

import pytest

from smg_mesh.io.security.keyring import Keyring
from smg_mesh.io.security.ring_key import RingKey
from smg_mesh.io.security.secret_marks import sealed_with
from smg_mesh.io.security.secret_vault import Vault

SECRET = "sk-very-sécret"
OLD, NEW = RingKey(secrets.token_bytes(32)), RingKey(secrets.token_bytes(32))


def vault(*keys: RingKey) -> Vault:
    """Return a vault with these keys, the primary first."""
    made = Vault()
    made.connect(Keyring(keys, "test"))
    return made


def test_alone_a_secret_is_only_marked_as_plain() -> None:
    alone = Vault()
    sealed = alone.seal(SECRET)
    assert sealed == b"\0" + SECRET.encode()
    assert alone.open(sealed) == SECRET
    assert alone.renew(sealed) is None
    assert alone.to_renew([sealed]) == 0


def test_with_a_keyring_members_can_read_it_and_nobody_else() -> None:
    sealed = vault(OLD).seal(SECRET)
    assert SECRET.encode() not in sealed
    assert sealed_with(sealed) == OLD.fingerprint
    assert vault(OLD).open(sealed) == SECRET
    assert vault(NEW, OLD).open(sealed) == SECRET
    assert vault(NEW).open(sealed) is None
    assert Vault().open(sealed) is None
    assert vault().open(sealed) is None


def test_what_was_sealed_before_is_renewed_with_the_primary_key() -> None:
    before = [Vault().seal(SECRET), vault(OLD).seal(SECRET)]
    now = vault(NEW, OLD)
    assert now.to_renew(before) == 2
    for sealed in before:
        renewed = now.renew(sealed)
        assert renewed is not None
        assert sealed_with(renewed) == NEW.fingerprint
        assert vault(NEW).open(renewed) == SECRET
        assert now.renew(renewed) is None


def test_what_cannot_be_opened_is_left_as_it_is() -> None:
    assert vault(NEW).renew(vault(OLD).seal(SECRET)) is None
    assert vault().renew(vault(OLD).seal(SECRET)) is None


@pytest.mark.parametrize("garbage", [b"", b"\0\xff", b"\1", b"\1" + bytes(40), b"\2what", b"x"])
def test_garbage_is_no_secret(garbage: bytes) -> None:
    for made in (Vault(), vault(OLD), vault()):
        assert made.open(garbage) is None or garbage == b"\0"
    assert sealed_with(garbage) in ("", "00000000")
