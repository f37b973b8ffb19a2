"""The one session of several processes, as each of them sees it: who opens, uses, hears and ends it."""

from smg_node.mcp.revisions import NEWEST_HANDSHAKE
from smg_node.mcp.session.opening import Opened
from smg_node.mcp.session.session import RequestIds, Session
from smg_node.mcp.session.session_record import SessionRecord
from smg_node.mcp.session.shared_session import APART_MS, HOLD_MS, SharedSession
from support.mcp.shared_session_world import IDLE_MS, RecordWorld, opened


def taken(shared: SharedSession) -> Session:
    record = shared.find()
    assert record is not None
    adopted = shared.adopted(record, RequestIds("b.1"))
    assert isinstance(adopted, Opened)
    return adopted.session


def test_a_session_is_taken_over_as_it_was_agreed_on() -> None:
    world = RecordWorld()
    world.shared("a").agreed(opened("s-1"), lists=True)
    session = taken(world.shared("b"))
    assert (session.session_id, session.revision) == ("s-1", NEWEST_HANDSHAKE)
    assert session.facts.capabilities == {"tools": {"listChanged": True}}
    assert (session.adopted, session.known, world.record.user) == (True, False, "b")


def test_a_record_of_another_version_is_not_taken_over() -> None:
    shared = RecordWorld().shared("a")
    for revision in ("2027-01-01", "2026-07-28", ""):
        assert shared.adopted(SessionRecord("s", revision, "b"), RequestIds("a")) is None


def test_use_puts_the_end_off_when_an_eighth_has_passed() -> None:
    world = RecordWorld()
    shared, session = world.shared("a"), opened("s-1")
    shared.agreed(session, lists=False)
    for _ in range(100):
        shared.used(session, lists=False)
    assert world.writes == 1
    world.now_ms += IDLE_MS // 8
    shared.used(session, lists=False)
    assert (world.writes, world.kept["k"].until_ms) == (2, world.now_ms + IDLE_MS)


def test_a_session_in_use_whose_record_is_lost_is_told_again() -> None:
    world = RecordWorld()
    shared, session = world.shared("a"), opened("s-1")
    shared.used(session, lists=True)
    assert (world.record.id, world.record.lists) == ("s-1", True)


def test_use_of_a_session_that_another_took_the_place_of_changes_nothing() -> None:
    world = RecordWorld()
    a, old = world.shared("a"), opened("s-1")
    a.agreed(old, lists=False)
    world.shared("b").agreed(opened("s-2"), lists=False)
    world.now_ms += IDLE_MS // 2
    a.used(old, lists=False)
    assert world.record.id == "s-2"


def test_what_one_finds_out_about_replicas_all_know() -> None:
    world = RecordWorld()
    a, session = world.shared("a"), opened("s-1")
    a.agreed(session, lists=False)
    session.scattered = True
    a.used(session, lists=False)
    assert taken(world.shared("b")).scattered


def test_a_forgotten_session_is_taken_away_and_its_successor_is_not() -> None:
    world = RecordWorld()
    a, b, session = world.shared("a"), world.shared("b"), opened("s-1")
    a.agreed(session, lists=False)
    a.forgotten(session)
    assert b.find() is None
    b.agreed(opened("s-2"), lists=False)
    a.forgotten(session)
    assert world.record.id == "s-2"


def test_processes_that_reach_different_replicas_stop_taking_sessions_away() -> None:
    world = RecordWorld()
    shared = {name: world.shared(name) for name in "ab"}
    opens = 0
    for name in "abababab":
        record = shared[name].find()
        if record is not None and record.user != name:
            strange = taken(shared[name])
            shared[name].forgotten(strange)
            record = None
        if record is None and not shared[name].apart:
            opens += 1
            shared[name].agreed(opened(f"{name}-{opens}"), lists=False)
    assert opens <= 4
    assert any(one.apart for one in shared.values())
    apart = next(one for one in shared.values() if one.apart)
    before = world.record
    apart.used(opened("own"), lists=False)
    assert (apart.find(), world.record, apart.ends(opened("own"), leaving=False)) == (
        None,
        before,
        True,
    )
    world.now_ms += APART_MS
    assert not apart.apart


def test_two_servers_that_were_started_anew_do_not_part_the_processes() -> None:
    world = RecordWorld()
    a, b = world.shared("a"), world.shared("b")
    for number in range(5):
        a.agreed(opened(f"s-{number}"), lists=False)
        session = taken(b)
        session.known = True
        b.used(session, lists=False)
        b.forgotten(session)
    assert not b.apart


# ── The stream by GET ────────────────────────────────────────────────────────


def test_one_process_has_the_stream_until_it_lets_go_of_it_or_dies() -> None:
    world = RecordWorld()
    a, b, session = world.shared("a"), world.shared("b"), opened("s-1")
    a.agreed(session, lists=True)
    until_ms = world.kept["k"].until_ms
    assert a.may_listen(session)
    a.hold(session)
    assert (a.may_listen(session), b.may_listen(session)) == (True, False)
    assert world.kept["k"].until_ms == until_ms
    a.hold(session, on=False)
    assert b.may_listen(session)
    b.hold(session)
    a.hold(session, on=False)
    assert not a.may_listen(session)
    world.alive.remove("b")
    assert a.may_listen(session)
    world.alive.add("b")
    world.now_ms += HOLD_MS
    assert a.may_listen(session)


def test_what_the_holder_hears_the_others_learn_once() -> None:
    world = RecordWorld()
    a, session = world.shared("a"), opened("s-1")
    a.agreed(session, lists=True)
    b = world.shared("b")
    taken(b)
    assert not b.changed()
    a.tell_change(session)
    assert (a.changed(), b.changed(), b.changed()) == (False, True, False)
    late = world.shared("c")
    taken(late)
    assert not late.changed()


# ── Its end ──────────────────────────────────────────────────────────────────


def test_the_last_user_ends_an_idle_session() -> None:
    world = RecordWorld()
    a, b, session = world.shared("a"), world.shared("b"), opened("s-1")
    a.agreed(session, lists=False)
    other = taken(b)
    a.find()
    assert not a.ends(session, leaving=False)
    world.now_ms += IDLE_MS
    assert (a.ends(session, leaving=False), b.ends(other, leaving=False)) == (False, True)


def test_a_session_whose_last_user_is_dead_is_ended_by_who_has_it_still() -> None:
    world = RecordWorld()
    a, session = world.shared("a"), opened("s-1")
    a.agreed(session, lists=False)
    taken(world.shared("b"))
    a.find()
    world.alive.remove("b")
    world.now_ms += IDLE_MS
    assert a.ends(session, leaving=False)


def test_a_process_that_leaves_ends_the_session_only_if_it_is_the_last() -> None:
    world = RecordWorld()
    a, session = world.shared("a"), opened("s-1")
    a.agreed(session, lists=False)
    assert not a.ends(session, leaving=True)
    world.alive.remove("b")
    assert a.ends(session, leaving=True)
    assert not world.kept


def test_a_process_alone_ends_what_it_lets_go_of_and_what_a_dead_one_used_last() -> None:
    world = RecordWorld()
    a, session = world.shared("a"), opened("s-1")
    a.agreed(session, lists=False)
    taken(world.shared("b"))
    assert not a.ends(session, leaving=False)
    world.alive.remove("b")
    assert a.ends(session, leaving=False)
    assert not world.kept


def test_others_go_on_for_as_long_as_the_record_says() -> None:
    world = RecordWorld()
    a = world.shared("a")
    assert a.left_s() == 0
    a.agreed(opened("s-1"), lists=False)
    world.now_ms += 100_000
    assert a.left_s() == 200
    world.alive.remove("b")
    assert a.left_s() == 0
