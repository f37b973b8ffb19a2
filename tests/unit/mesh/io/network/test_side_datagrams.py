import pytest

from smg_mesh.io.network.side_datagrams import (
    LETTER_BYTES_MAX,
    is_letter,
    read_letter,
    write_letter,
)
from smg_mesh.io.security.keyring import Keyring
from smg_mesh.io.security.ring_key import RingKey
from smg_mesh.swim import wire
from smg_mesh.swim.messages import Gossip, Packet
from smg_mesh.swim.wire import WireError, sender_tag

RINGS = [Keyring.insecure("test"), Keyring([RingKey(bytes(32))], "test")]


@pytest.mark.parametrize("ring", RINGS)
@pytest.mark.parametrize("content", [b"", b"rights", bytes(LETTER_BYTES_MAX)])
def test_a_letter_is_sealed_and_opened_as_gossip_is(ring: Keyring, content: bytes) -> None:
    opened = ring.open(ring.seal(write_letter("a", 7, content)))
    assert is_letter(opened)
    assert read_letter(opened) == (sender_tag("a"), content)


def test_gossip_is_no_letter() -> None:
    packet = wire.encode(Packet(sender_tag("a"), 7, 0, bytes(16), Gossip()))
    assert not is_letter(packet)
    assert not is_letter(b"")
    assert not is_letter(packet[: wire.HEADER_BYTES])


def test_who_knows_no_letters_refuses_one() -> None:
    with pytest.raises(WireError, match="body"):
        wire.decode(write_letter("a", 7, b"rights"))
