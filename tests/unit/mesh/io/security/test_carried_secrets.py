"""What clients carry is read by every node that has its key, by nobody else, and not when it was changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.io.security.carried_secrets import CarriedSecrets
from smg_mesh.io.security.keyring import Keyring
from smg_mesh.io.security.ring_key import RingKey

ONE, TWO, THREE = (RingKey(bytes([number]) * 32) for number in (1, 2, 3))
TEXT = "a thought of the model"


def of(*keys: RingKey, label: str = "blue") -> CarriedSecrets:
    return CarriedSecrets(Keyring(keys, label).carried_keys)


def test_every_node_with_the_key_reads_it() -> None:
    sealed = of(ONE, TWO).seal(TEXT)
    assert TEXT.encode() not in sealed
    assert of(ONE).open_secret(sealed) == TEXT
    assert of(TWO, ONE).open_secret(sealed) == TEXT


@pytest.mark.parametrize("other", [of(TWO, THREE), of(ONE, label="green"), of()])
def test_nobody_else_does(other: CarriedSecrets) -> None:
    assert other.open_secret(of(ONE).seal(TEXT)) is None


def test_a_rotation_seals_with_the_new_key_and_reads_the_old_while_it_is_there() -> None:
    ring = Keyring([ONE], "blue")
    carried = CarriedSecrets(ring.carried_keys)
    before = carried.seal(TEXT)
    ring.install(TWO.secret)
    between = carried.seal(TEXT)
    ring.use(TWO.fingerprint)
    after = carried.seal(TEXT)
    assert [of(ONE).open_secret(each) for each in (before, between, after)] == [TEXT, TEXT, None]
    assert [carried.open_secret(each) for each in (before, between, after)] == [TEXT] * 3
    ring.remove(ONE.fingerprint)
    assert [carried.open_secret(each) for each in (before, between, after)] == [None, None, TEXT]


def test_without_a_keyring_it_is_only_encoded_and_with_one_that_is_refused() -> None:
    sealed = of().seal(TEXT)
    assert sealed == b"\0" + TEXT.encode()
    assert of().open_secret(sealed) == TEXT
    assert of(ONE).open_secret(sealed) is None


def test_no_two_are_alike_and_the_keys_are_not_the_rings() -> None:
    carried = of(ONE)
    assert len({carried.seal(TEXT) for _ in range(50)}) == 50
    (key,) = Keyring([ONE], "blue").carried_keys()
    assert key[:4] == ONE.id
    assert ONE.secret not in key
    assert Keyring([ONE], "blue").open_secret(Keyring([ONE], "blue").seal_secret(b"x")) == b"x"


@given(st.data())
def test_what_was_changed_anywhere_is_refused(data: st.DataObject) -> None:
    carried = of(ONE)
    sealed = bytearray(carried.seal(TEXT))
    at = data.draw(st.integers(0, len(sealed) - 1))
    sealed[at] ^= data.draw(st.integers(1, 255))
    assert carried.open_secret(bytes(sealed)) is None


@given(st.binary(max_size=80))
def test_garbage_is_refused(garbage: bytes) -> None:
    assert of(ONE).open_secret(garbage) is None


def test_a_digest_is_the_same_at_all_nodes_with_the_same_first_key_and_at_no_other() -> None:
    one, other = bytes(range(36)), bytes(range(1, 37))
    at_a, at_b = CarriedSecrets(lambda: [one, other]), CarriedSecrets(lambda: [one])
    strange = CarriedSecrets(lambda: [other, one])
    assert at_a.digest(b"text", 8) == at_b.digest(b"text", 8)
    assert len(at_a.digest(b"text", 8)) == 8
    keyless = CarriedSecrets(tuple)
    digests = [at_a.digest(b"", 8), *(view.digest(b"text", 8) for view in (at_a, strange, keyless))]
    assert len(set(digests)) == 4
