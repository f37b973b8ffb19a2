import random

from smg_mesh.io.security.replay_window import SENDERS_MAX, WINDOW, Replays, Window

A = b"aaaaaaaa"
B = b"bbbbbbbb"


def accept(replays: Replays, counter: int, *, sender: bytes = A, boot: int = 1) -> bool:
    fresh = replays.is_fresh(sender, boot, counter)
    if fresh:
        replays.mark(sender, boot, counter)
    return fresh


def test_a_counter_is_fresh_once() -> None:
    replays = Replays()
    assert accept(replays, 0)
    assert not accept(replays, 0)
    assert accept(replays, 2**64 - 1)
    assert not accept(replays, 2**64 - 1)
    assert not accept(replays, 1)


def test_asking_changes_nothing() -> None:
    replays = Replays()
    assert replays.is_fresh(A, 1, 5)
    assert replays.is_fresh(A, 1, 5)
    assert len(replays) == 0


def test_packets_may_overtake_each_other_within_the_window() -> None:
    replays = Replays()
    assert accept(replays, 5000)
    assert accept(replays, 5000 - WINDOW + 1)
    assert not accept(replays, 5000 - WINDOW)
    assert not accept(replays, 5000 - WINDOW + 1)


def test_a_window_agrees_with_a_set_of_all_numbers() -> None:
    rng = random.Random(3)
    window, seen = Window(1), set[int]()
    base = 10_000
    for _ in range(20_000):
        base += rng.choice([0, 0, 1, 1, 2, 50, 1023, 1024, 1025]) if rng.random() < 0.1 else 0
        counter = base + rng.randrange(-1100, 3)
        highest = max(seen, default=-1)
        fresh = counter not in seen and (counter > highest - WINDOW)
        assert window.is_fresh(counter) is fresh
        if fresh:
            window.mark(counter)
            seen.add(counter)
    assert window.seen.bit_length() <= WINDOW


def test_a_leap_of_any_size_costs_no_memory() -> None:
    window = Window(1)
    for counter in (0, 1 << 40, 1 << 63, 2**64 - 1):
        window.mark(counter)
        assert window.seen.bit_length() <= WINDOW
        assert not window.is_fresh(counter)


def test_senders_do_not_disturb_each_other() -> None:
    replays = Replays()
    assert accept(replays, 9)
    assert accept(replays, 9, sender=B)
    assert not accept(replays, 9)


def test_a_larger_boot_starts_afresh_and_the_smaller_one_is_still_checked() -> None:
    replays = Replays()
    assert accept(replays, 9, boot=1)
    assert accept(replays, 9, boot=2)
    assert not accept(replays, 9, boot=2)
    assert not accept(replays, 9, boot=1)
    assert accept(replays, 10, boot=1)
    assert not accept(replays, 10, boot=1)


def test_old_boots_never_push_out_the_window_of_the_newest() -> None:
    replays = Replays()
    assert accept(replays, 7, boot=10_000)
    for boot in range(9999):
        assert accept(replays, 7, boot=boot)
        assert not accept(replays, 7, boot=boot)
    assert not accept(replays, 7, boot=10_000)
    assert len(replays) == 1


def test_the_sender_not_heard_for_longest_is_forgotten_first() -> None:
    replays = Replays(senders_max=3)
    for i in range(3):
        assert accept(replays, 1, sender=bytes([i] * 8))
    assert accept(replays, 2, sender=bytes(8))
    assert accept(replays, 1, sender=bytes([9] * 8))
    assert len(replays) == 3
    assert not accept(replays, 1, sender=bytes(8))
    assert not accept(replays, 1, sender=bytes([2] * 8))
    assert accept(replays, 1, sender=bytes([1] * 8))  # as after a restart of this node


def test_the_bound_holds_for_senders_of_several_lives() -> None:
    replays = Replays(senders_max=50)
    for i in range(500):
        for boot in (3, 2, 4):
            assert accept(replays, 1, sender=i.to_bytes(8, "big"), boot=boot)
    assert len(replays) == 50
    assert replays.older() == 50
    assert SENDERS_MAX == 4096
