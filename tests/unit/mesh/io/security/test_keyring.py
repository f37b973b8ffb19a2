from collections.abc import Callable
from hashlib import blake2b

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from smg_mesh.io.security.keyring import Keyring
from smg_mesh.io.security.rejected import REASONS, Rejected
from smg_mesh.io.security.ring_key import RingKey
from smg_mesh.swim import wire
from smg_mesh.swim.messages import Ack, Packet

ONE = RingKey(bytes(range(32)))
TWO = RingKey(bytes(range(1, 33)))
BOOT = 1_720_000_000_000 << 16


def ring(*keys: RingKey, label: str = "blue") -> Keyring:
    return Keyring(keys or (ONE,), label)


def packet_of(name: str = "a", boot: int = BOOT, nonce: int = 1) -> bytes:
    return wire.encode(Packet(wire.sender_tag(name), boot, 0, bytes(16), Ack(nonce)))


def refused(keyring: Keyring, datagram: bytes) -> str:
    with pytest.raises(Rejected) as caught:
        keyring.open(datagram)
    assert caught.value.reason in REASONS
    return caught.value.reason


def counter_of(datagram: bytes) -> int:
    return wire.header(datagram).counter


@pytest.fixture(params=["sealed", "plain"])
def pair(request: pytest.FixtureRequest) -> tuple[Keyring, Keyring]:
    if request.param == "sealed":
        return ring(), ring()
    return Keyring.insecure("blue"), Keyring.insecure("blue")


def test_what_one_member_seals_another_opens(pair: tuple[Keyring, Keyring]) -> None:
    ours, theirs = pair
    datagram = ours.seal(packet_of())
    assert len(datagram) == len(packet_of()) + wire.SEAL_BYTES
    assert theirs.open(datagram) == packet_of()


def test_the_largest_packet_is_one_datagram(pair: tuple[Keyring, Keyring]) -> None:
    ours, theirs = pair
    largest = packet_of()[:32] + bytes(wire.BODY_BYTES_MAX)
    assert len(ours.seal(largest)) == wire.PACKET_BYTES_MAX
    assert theirs.open(ours.seal(largest)) == largest


def test_nothing_of_the_body_can_be_read_on_the_way() -> None:
    packet = packet_of()[:32] + b"a secret of many words"
    assert b"secret" not in ring().seal(packet)
    assert b"secret" in Keyring.insecure("blue").seal(packet)


def test_a_packet_is_let_in_once(pair: tuple[Keyring, Keyring]) -> None:
    ours, theirs = pair
    first, second, third = (ours.seal(packet_of(nonce=i)) for i in range(3))
    assert theirs.open(second) == packet_of(nonce=1)
    assert refused(theirs, second) == "replay"
    assert theirs.open(first) == packet_of(nonce=0)
    assert refused(theirs, first) == "replay"
    assert theirs.open(third) == packet_of(nonce=2)
    assert [refused(theirs, datagram) for datagram in (third, second, first)] == ["replay"] * 3


def test_a_refused_packet_does_not_use_up_its_number(pair: tuple[Keyring, Keyring]) -> None:
    ours, theirs = pair
    datagram = ours.seal(packet_of())
    damaged = datagram[:40] + bytes([datagram[40] ^ 1]) + datagram[41:]
    assert refused(theirs, damaged) == "tag"
    assert theirs.open(datagram) == packet_of()


def test_a_forged_number_far_ahead_does_not_shut_the_sender_out(
    pair: tuple[Keyring, Keyring],
) -> None:
    ours, theirs = pair
    datagram = ours.seal(packet_of())
    forged = datagram[:24] + b"\xff" * 8 + datagram[32:]
    assert refused(theirs, forged) == "tag"
    assert theirs.open(datagram) == packet_of()


@pytest.mark.parametrize("other", [ring(TWO), ring(label="green"), ring(ONE, label="blu")])
def test_another_key_or_label_opens_nothing(other: Keyring) -> None:
    reason = "key" if other.keys() != ring().keys() else "tag"
    assert refused(other, ring().seal(packet_of())) == reason
    assert refused(ring(), other.seal(packet_of())) == reason


def test_insecure_clusters_of_other_labels_do_not_meet_by_accident() -> None:
    green = Keyring.insecure("green")
    assert refused(green, Keyring.insecure("blue").seal(packet_of())) == "tag"


def test_sealed_and_plain_nodes_never_talk() -> None:
    plain = Keyring.insecure("blue")
    assert refused(plain, ring().seal(packet_of())) == "sealed"
    assert refused(ring(), plain.seal(packet_of())) == "plain"


def test_turning_the_flag_of_a_packet_does_not_help(pair: tuple[Keyring, Keyring]) -> None:
    ours, theirs = pair
    datagram = ours.seal(packet_of())
    turned = datagram[:3] + bytes([datagram[3] ^ 1]) + datagram[4:]
    assert refused(theirs, turned) in ("plain", "sealed")
    for other in (ring(), Keyring.insecure("blue")):
        with pytest.raises(Rejected):
            other.open(turned)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda datagram: b"",
        lambda datagram: datagram[:48],
        lambda datagram: datagram + bytes(1400),
        lambda datagram: b"XX" + datagram[2:],
        lambda datagram: datagram[:2] + b"\2" + datagram[3:],
        lambda datagram: datagram[:3] + b"\2" + datagram[4:],
    ],
)
def test_what_is_no_packet_of_this_version_is_refused(
    spoil: Callable[[bytes], bytes], pair: tuple[Keyring, Keyring]
) -> None:
    ours, theirs = pair
    assert refused(theirs, spoil(ours.seal(packet_of()))) == "wire"


def test_a_packet_cannot_be_given_to_another_sender_or_boot(
    pair: tuple[Keyring, Keyring],
) -> None:
    ours, theirs = pair
    datagram = ours.seal(packet_of())
    relabelled = datagram[:8] + packet_of("b", BOOT + 1)[8:24] + datagram[24:]
    assert refused(theirs, relabelled) == "tag"


def test_an_unknown_key_id_is_refused_in_both_modes(pair: tuple[Keyring, Keyring]) -> None:
    ours, theirs = pair
    datagram = ours.seal(packet_of())
    assert refused(theirs, datagram[:4] + b"none" + datagram[8:]) == "key"


def test_numbers_rise_by_one_whatever_boot_or_key_comes_next() -> None:
    keyring = ring(ONE, TWO)
    datagrams = [keyring.seal(packet_of(boot=boot)) for boot in (5, 5, 9, 5)]
    keyring.use(TWO.fingerprint)
    datagrams.append(keyring.seal(packet_of(boot=5)))
    keyring.use(ONE.fingerprint)
    datagrams.append(keyring.seal(packet_of(boot=5)))
    first = counter_of(datagrams[0])
    assert [counter_of(datagram) for datagram in datagrams] == list(range(first, first + 6))
    other = ring(ONE, TWO)
    assert all(other.open(datagram) for datagram in datagrams)


def test_a_second_ring_of_the_same_boot_counts_elsewhere() -> None:
    numbers = [counter_of(ring().seal(packet_of())) for _ in range(20)]
    apart = [abs(a - b) for i, a in enumerate(numbers) for b in numbers[:i]]
    assert min(apart) > 10_000


def test_a_ring_made_later_counts_higher(monkeypatch: pytest.MonkeyPatch) -> None:
    uptime_ns = 10**15
    monkeypatch.setattr("smg_mesh.io.security.keyring.time.monotonic_ns", lambda: uptime_ns)
    before = counter_of(ring().seal(packet_of()))
    uptime_ns += 2 * 10**9
    assert counter_of(ring().seal(packet_of())) > before
    uptime_ns = 10**9 * 3600 * 24 * 365 * 60  # even after 60 years there are numbers left
    assert counter_of(ring().seal(packet_of())) < 1 << 63


def test_the_same_packet_is_never_the_same_datagram() -> None:
    keyring = ring()
    assert len({keyring.seal(packet_of())[32:] for _ in range(100)}) == 100


def test_a_restarted_sender_is_heard_at_once_and_its_old_life_too() -> None:
    # What a smaller boot says is for the core to judge: it has no effect but an answer.
    theirs = ring()
    old, new = ring(), ring()
    early, late = (old.seal(packet_of(boot=5, nonce=i)) for i in range(2))
    assert theirs.open(early)
    assert theirs.open(new.seal(packet_of(boot=6)))
    assert theirs.open(late)
    assert refused(theirs, late) == "replay"


def test_a_receiver_that_restarted_has_no_memory_but_the_cipher_is_the_same() -> None:
    datagram = ring().seal(packet_of())
    assert ring().open(datagram) == ring().open(datagram) == packet_of()


def test_anyone_with_the_key_and_this_description_can_open_a_packet() -> None:
    packet = packet_of()
    datagram = ring().seal(packet)
    assert datagram[:4] == b"SM\1\0"
    assert datagram[4:8] == blake2b(ONE.secret).digest()[:4]
    assert datagram[8:24] == packet[8:24]
    derived = blake2b(
        datagram[8:24] + b"blue", key=ONE.secret, digest_size=32, person=b"smg mesh packet"
    ).digest()
    body = AESGCM(derived).decrypt(bytes(4) + datagram[24:32], datagram[32:], datagram[:32])
    assert body == packet[32:]


def test_forged_senders_leave_nothing_behind() -> None:
    theirs, ours = ring(), ring()
    for i in range(300):
        assert refused(theirs, datagram_from(ours, i)) == "tag"
    assert theirs.senders() == 0
    assert theirs.open(ours.seal(packet_of()))
    assert theirs.senders() == 1


def datagram_from(keyring: Keyring, i: int) -> bytes:
    datagram = keyring.seal(packet_of())
    return datagram[:8] + wire.sender_tag(f"b{i}") + datagram[16:]


def test_senders_and_ciphers_are_bounded() -> None:
    theirs, ours = ring(), ring()
    for i in range(5000):
        assert theirs.open(ours.seal(packet_of(f"n{i}")))
    assert theirs.senders() == 4096
    assert theirs.ciphers() == 1024
