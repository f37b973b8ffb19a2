"""What a node holds after it was away, restarted, or had a wrong clock."""

from support.state.replica_world import SMALL, ReplicaWorld


def test_a_removal_beats_a_write_that_is_still_on_its_way() -> None:
    world = ReplicaWorld(3)
    world["a"].workers.put("w-1", b"spec")
    late = list(world["a"].said)
    world.exchange("a", "b")
    world["a"].said.clear()
    world["b"].workers.remove("w-1")
    world.rumors()
    for news in late:
        world["c"].replica.hear(news)
    world.settle()
    assert [peer.values("workers") for peer in world.peers.values()] == [{}, {}, {}]
    assert world.agreed()


def test_a_restarted_node_with_an_old_disk_brings_nothing_removed_back() -> None:
    world = ReplicaWorld(3)
    world["a"].workers.put("w-1", b"spec")
    world.settle()
    kept = world["a"].dumps()
    world.stop("a")
    world["b"].workers.remove("w-1")
    world.settle()
    world.start("a", kept)
    assert world["a"].values("workers") == {"w-1": b"spec"}
    world.exchange("a", "c", full=True)
    world.settle()
    assert all(peer.values("workers") == {} for peer in world.peers.values())
    assert world.agreed()


def test_a_whole_cluster_comes_back_from_its_disks() -> None:
    world = ReplicaWorld(3)
    for name in "abc":
        world[name].workers.put(f"w-{name}", b"spec")
        world[name].settings.put("policy", name.encode())
        world.clocks.now_ms += 1
    world.settle()
    kept = {name: peer.dumps() for name, peer in world.peers.items()}
    before = world["a"].values(), world["a"].values("workers")
    for name in "abc":
        world.stop(name)
    for name in "abc":
        world.start(name, kept[name])
    world.settle()
    for peer in world.peers.values():
        assert (peer.values(), peer.values("workers")) == before
    assert world.agreed()


def test_who_was_away_longer_than_removals_are_kept_gives_way() -> None:
    world = ReplicaWorld(2)
    world.exchange("a", "b", full=True)
    world["a"].workers.put("w-old", b"spec")
    world["a"].workers.put("w-kept", b"spec")
    world.settle()
    kept = world["a"].dumps()
    world.stop("a")
    world["b"].workers.remove("w-old")
    away_ms = SMALL.removed_keep_ms + 60_000
    world.clocks.now_ms += away_ms
    world.pass_time(120_000, 10_000)
    back = world.start("a", kept, absent_ms=away_ms)
    heard: list[str] = []
    back.replica.watch_forgotten(lambda: heard.append("forgotten"))
    assert back.replica.stale
    world.exchange("a", "b", full=True)
    assert heard == ["forgotten"]
    assert back.values("workers") == {"w-kept": b"spec"}
    assert world["b"].values("workers") == {"w-kept": b"spec"}
    assert not back.replica.stale


def test_who_came_back_in_time_and_met_nobody_until_it_was_too_late_gives_way() -> None:
    world = ReplicaWorld(3)
    world.exchange("a", "b", full=True)
    world["c"].workers.put("w-old", b"spec")
    world["a"].workers.put("w-kept", b"spec")
    world.settle()
    kept = world["a"].dumps()
    world.stop("a")
    world["b"].workers.remove("w-old")
    world.settle()
    away_ms = SMALL.removed_keep_ms - 30_000
    world.clocks.now_ms += away_ms
    back = world.start("a", kept, absent_ms=away_ms)
    heard: list[str] = []
    back.replica.watch_forgotten(lambda: heard.append("forgotten"))
    assert not back.replica.stale
    world.pass_time(80_000, 1_000)
    assert world["b"].workers.latest("w-old") is None
    world.exchange("a", "b", full=True)
    world.settle()
    assert heard == ["forgotten"]
    for peer in world.peers.values():
        assert peer.values("workers") == {"w-kept": b"spec"}


def test_a_cluster_that_slept_for_weeks_forgets_nothing_because_a_stranger_started_first() -> None:
    world = ReplicaWorld(1)
    world["a"].workers.put("w-1", b"spec")
    kept = world["a"].dumps()
    world.stop("a")
    world.start("n").workers.put("w-2", b"spec")
    back = world.start("a", kept, absent_ms=SMALL.removed_keep_ms * 2)
    assert back.replica.stale
    assert not world["n"].replica.stale
    world.exchange("n", "a", full=True)
    for peer in (back, world["n"]):
        assert sorted(peer.values("workers")) == ["w-1", "w-2"]


def test_what_was_written_lately_survives_a_long_absence_of_its_writer() -> None:
    world = ReplicaWorld(2)
    world.exchange("a", "b", full=True)
    world.settle()
    world["a"].workers.put("w-old", b"spec")
    world.clocks.now_ms += SMALL.removed_keep_ms + 1_000
    world["a"].workers.put("w-young", b"spec")
    kept = world["a"].dumps()
    world.stop("a")
    back = world.start("a", kept, absent_ms=SMALL.removed_keep_ms + 1)
    world.exchange("a", "b", full=True)
    assert back.values("workers") == {"w-young": b"spec"}
    assert world["b"].values("workers") == {"w-young": b"spec"}


def test_an_empty_newcomer_never_makes_a_long_absent_node_forget() -> None:
    world = ReplicaWorld(1)
    world["a"].workers.put("w-1", b"spec")
    kept = world["a"].dumps()
    world.stop("a")
    back = world.start("a", kept, absent_ms=SMALL.removed_keep_ms * 2)
    world.start("b")
    world.exchange("b", "a", full=True)
    assert back.values("workers") == {"w-1": b"spec"}
    assert world["b"].values("workers") == {"w-1": b"spec"}


def test_a_write_of_a_clock_far_ahead_waits_for_its_time() -> None:
    world = ReplicaWorld(2)
    world["a"].settings.put("x", b"now")
    world.rumors()
    world.clocks.wrong_ms["a"] = 120_000
    world["a"].settings.put("x", b"later")
    world.rumors()
    assert world["b"].values() == {"x": b"now"}
    assert [held.future for held in world["b"].settings.conflicts("x")] == [True]
    assert (
        world["b"].settings.put("y", b"1").version >> 16
        < world["a"].settings.put("z", b"1").version >> 16
    )
    world.pass_time(125_000, 5_000)
    assert world["b"].values()["x"] == b"later"


def test_a_wall_clock_that_is_set_back_by_an_hour_hides_nothing_and_hinders_no_write() -> None:
    world = ReplicaWorld(2)
    world["a"].settings.put("x", b"1")
    world.clocks.wrong_ms["a"] = -3_600_000
    world["a"].settings.put("x", b"2")
    world["a"].workers.put("w-1", b"spec")  # in a document that knows only the clock of now
    world["a"].replica.namespace("audit").put("y", b"3")
    assert world["a"].values() == {"x": b"2"}
    world.settle()
    assert world["b"].values() == {"x": b"2"}
    assert world["b"].values("workers") == {"w-1": b"spec"}


def test_every_piece_that_changed_is_to_be_kept_and_can_be_loaded_again() -> None:
    world = ReplicaWorld(1)
    for number in range(30):
        world["a"].settings.put(f"k{number}", b"v")
    world["a"].replica.table("sticky").put("key", b"w-1")
    kept = {name: world["a"].replica.dump(name) for name in world["a"].keeps}
    assert sorted(kept) == list(world["a"].replica.pieces())
    world.stop("a")
    again = world.start("a", kept)
    assert len(again.settings) == 30
    assert again.replica.table("sticky").get("key") is not None


def test_what_waits_for_its_time_counts_soon_after_a_clock_that_was_slow_is_set() -> None:
    world = ReplicaWorld(1)
    world.clocks.wrong_ms["b"] = -3_600_000
    world.start("b")
    world["b"].settings.put("y", b"1")
    world["a"].settings.put("x", b"1")
    world.settle()
    assert "x" not in world["b"].values()
    del world.clocks.wrong_ms["b"]
    world.pass_time(32_000, 500)
    assert world["b"].values()["x"] == b"1"


def test_a_clock_that_was_far_ahead_for_a_moment_freezes_nothing() -> None:
    world = ReplicaWorld(2)
    world.clocks.wrong_ms["a"] = 3_600_000
    world["a"].settings.put("x", b"1")
    world["a"].workers.put("w-1", b"spec")
    world.settle()
    assert world["b"].values() == {}
    del world.clocks.wrong_ms["a"]
    world["a"].settings.put("y", b"2")  # at once, and of a key of its own
    world["a"].settings.put("x", b"3")
    world.settle()
    for peer in world.peers.values():
        assert peer.values() == {"x": b"3", "y": b"2"}
        assert peer.values("workers") == {"w-1": b"spec"}
    world["b"].settings.put("x", b"4")
    world.settle()
    assert world["a"].values()["x"] == b"4"
    assert world.agreed()
