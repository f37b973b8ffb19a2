from collections.abc import Mapping

from msgspec.structs import replace

from smg_mesh.escrow.election.voter import BLIND_KEY, SIGHT_KEY, Promise, Voter
from smg_mesh.escrow.limit_model import Life
from smg_mesh.escrow.messages.messages import LeaseAsk, LeaseVote, Minted, RecordsAsk, Stored
from smg_mesh.escrow.roster.roster_values import first

ROSTER = replace(first(bytes(16), ["a", "b", "c"]), proven=True)
WALL_MS = 1_700_000_000_000
SHORT, LONG = "s#requests/1000", "s#tokens/86400000"
LEVEL = "s#concurrent/0\x1fa"
TODAY = WALL_MS // 86_400_000


def voter(
    *,
    remembered: Mapping[tuple[str, int], int] | None = None,
    name: str = "b",
    volatile: bool = False,
    founder: bool = False,
    fresh: bool = False,
) -> Voter:
    one = Voter(
        Life(name, 1),
        now_ms=0,
        wall_ms=WALL_MS,
        remembered=remembered,
        fresh=fresh,
        volatile=lambda key: volatile,
    )
    one.roster, one.founder = ROSTER, founder
    return one


def ask(
    term: int = 1,
    *,
    name: str = "a",
    boot: int = 1,
    rows: tuple[Minted, ...] = (),
    release: bool = False,
    unused: bool = False,
    version: int = 1,
) -> LeaseAsk:
    return LeaseAsk(3, term, name, boot, bytes(16), version, 77, rows, release, unused)


def vote(one: Voter, asked: LeaseAsk, now_ms: int = 1_200) -> LeaseVote:
    return one.asked(asked, now_ms=now_ms, wall_ms=WALL_MS + now_ms)[0]


def window(at_ms: int) -> int:
    return (WALL_MS + at_ms) // 1_000


def test_a_voter_that_has_just_booted_promises_nothing() -> None:
    one = voter()
    assert vote(one, ask(), 1_099).why == "just booted"
    assert one.promised(3, now_ms=1_099) == Promise("", 0, 0)
    assert vote(one, ask(), 1_100).granted
    assert one.promised(3, now_ms=1_100) == ("a", 1, 1)


def test_a_promise_is_for_one_life_and_runs_for_a_second() -> None:
    one = voter()
    assert vote(one, ask(1)).granted
    assert vote(one, ask(2, name="c"), 2_199).why == "promised"
    assert vote(one, ask(2, boot=2), 2_199).why == "promised"
    assert vote(one, ask(2, name="c"), 2_200).granted


def test_a_smaller_term_or_the_same_of_another_life_gets_nothing() -> None:
    one = voter()
    assert vote(one, ask(5)).granted
    assert vote(one, ask(5, name="c"), 5_000).why == "old term"
    assert vote(one, ask(4, name="c"), 5_000).why == "old term"
    assert vote(one, ask(5), 5_000).granted
    assert vote(one, ask(4), 5_000).seen_term == 5


def test_another_roster_is_named_and_strangers_are_refused() -> None:
    one = voter()
    refused = vote(one, ask(version=2))
    assert (refused.why, refused.roster_version) == ("another roster", 1)
    assert vote(one, ask(name="x")).why == "not in the roster"
    one.roster = None
    assert vote(one, ask()).roster == bytes(16)


def test_nothing_is_promised_nor_stored_under_a_first_roster_that_is_not_proven() -> None:
    one = voter()
    one.roster = replace(ROSTER, proven=False)
    said = vote(one, ask(rows=(Minted(SHORT, window(1_200), 5),)))
    assert (said.granted, said.why, said.stored) == (False, "not in a roster", ())
    assert one.promised(3, now_ms=1_200) is None


def test_a_release_frees_the_slot_and_one_that_was_never_used_also_the_term() -> None:
    one = voter()
    assert vote(one, ask(1)).granted
    assert vote(one, ask(9, name="c"), 2_300).granted
    assert not vote(one, ask(9, name="c", release=True, unused=True), 2_310).granted
    assert one.promised(3, now_ms=2_310) is None
    assert vote(one, ask(1), 2_320).granted
    assert vote(one, ask(9, name="c"), 3_400).granted
    vote(one, ask(9, name="c", release=True), 3_410)
    assert vote(one, ask(1), 3_420).why == "old term"


def test_the_base_is_what_was_stored_before_this_term() -> None:
    one = voter()
    place = (SHORT, window(3_000))
    first_vote = vote(one, ask(1, rows=(Minted(*place, 30),)), 2_500)
    assert first_vote.stored == (Stored(*place, 0, 30),)
    again = vote(one, ask(1, rows=(Minted(*place, 50), Minted(*place, 40))), 2_600)
    assert again.stored == (Stored(*place, 0, 50), Stored(*place, 0, 50))
    assert vote(one, ask(2, name="c", rows=(Minted(*place, 70),)), 3_800).stored == (
        Stored(*place, 50, 70),
    )


def test_windows_that_began_before_the_boot_are_not_stored_nor_those_far_ahead_or_long_over() -> (
    None
):
    one = voter()
    rows = [Minted(SHORT, window(at_ms), 1) for at_ms in (0, 1_000, 2_000, 9_000)]
    stored = vote(one, ask(rows=tuple(rows)), 1_200).stored
    assert [row.window for row in stored] == [window(2_000)]
    assert not vote(one, ask(rows=(Minted(SHORT, window(3_000), 1),)), 20_000).stored
    assert not vote(one, ask(rows=(Minted("odd", 1, 1),)), 20_000).stored


def test_a_day_is_stored_by_who_remembers_it_and_not_by_who_may_have_forgotten() -> None:
    row = (Minted(LONG, TODAY, 900),)
    assert not vote(voter(remembered=None), ask(rows=row), 20_000).stored
    kept = vote(voter(remembered={(LONG, TODAY): 700}), ask(rows=row)).stored
    assert kept == (Stored(LONG, TODAY, 700, 900),)
    assert not vote(voter(remembered={}, fresh=True), ask(rows=row), 20_000).stored
    assert vote(voter(remembered={}, fresh=True, founder=True), ask(rows=row)).stored


def test_a_volatile_day_is_stored_again_after_ten_seconds() -> None:
    row = (Minted(LONG, TODAY, 900),)
    one = voter(volatile=True)
    assert not vote(one, ask(rows=row), 11_000).stored
    assert one.asked(ask(rows=row), now_ms=11_100, wall_ms=WALL_MS + 11_100)[1] == ()
    assert vote(one, ask(rows=row), 11_200).stored


def test_rows_of_long_windows_are_named_until_the_disk_has_them() -> None:
    one = voter(remembered={})
    asked = ask(rows=(Minted(LONG, TODAY, 5), Minted(SHORT, window(2_000), 5)))
    first_rows = one.asked(asked, now_ms=1_200, wall_ms=WALL_MS + 1_200)[1]
    assert first_rows == (Minted(LONG, TODAY, 5),)
    assert one.asked(asked, now_ms=1_300, wall_ms=WALL_MS + 1_300)[1] == first_rows
    one.persisted(first_rows)
    assert one.asked(asked, now_ms=1_400, wall_ms=WALL_MS + 1_400)[1] == ()


def test_a_disk_says_that_its_records_are_not_whole_until_they_are_recovered() -> None:
    one = voter(remembered={}, fresh=True)
    (blind,) = one.unwritten()
    assert blind.key == BLIND_KEY
    assert one.unwritten() == ()
    again = voter(remembered={(blind.key, blind.window): blind.total})
    assert not vote(again, ask(rows=(Minted(LONG, TODAY, 9),)), 20_000).stored
    recover(again)
    (sight,) = again.unwritten()
    assert sight.key == SIGHT_KEY
    whole = voter(remembered={(row.key, row.window): row.total for row in (blind, sight)})
    assert vote(whole, ask(rows=(Minted(LONG, TODAY, 9),))).stored


def recover(one: Voter) -> None:
    """Let it ask two others that have been there for long."""
    others = {name: voter(remembered={}, name=name, founder=True) for name in "ac"}
    place = (LONG, TODAY)
    for other in others.values():
        assert vote(other, ask(65_537, name="c", rows=(Minted(*place, 40),))).stored
    for _ in range(3):
        for name, records_ask in one.asks(now_ms=20_000 + 200 * _):
            tell = others[name].records_asked(records_ask, now_ms=20_000)
            assert tell is not None
            one.records_told(tell, now_ms=20_000)


def test_a_majority_of_the_others_gives_back_what_was_forgotten_and_the_terms() -> None:
    one = voter(remembered=None)
    assert not one.synced
    recover(one)
    assert one.synced
    assert one.asks(now_ms=30_000) == []
    got = vote(one, ask(65_538, rows=(Minted(LONG, TODAY, 90),)), 30_000)
    assert got.stored == (Stored(LONG, TODAY, 40, 90),)
    assert vote(one, ask(65_537, name="a"), 40_000).why == "old term"


def test_pages_follow_each_other_until_all_is_told() -> None:
    teller, one = voter(remembered={}, name="a", founder=True), voter(remembered=None)
    for number in range(120):
        teller.records.remember(f"scope-{number:03}#tokens/86400000", TODAY, 7, durable=7, now_ms=0)
    pages = 0
    for now_ms in range(2_000, 12_000, 200):
        for name, asked in one.asks(now_ms=now_ms):
            tell = teller.records_asked(asked, now_ms=now_ms) if name == "a" else None
            if tell is not None:
                pages += 1
                one.records_told(tell, now_ms=now_ms)
    assert pages > 3
    assert len(one.records) == 120
    assert one.synced
    assert [name for name, _ in one.asks(now_ms=20_000)] == ["c"]


def test_nobody_tells_its_records_to_who_goes_by_another_roster() -> None:
    one = voter(remembered={})
    asked = RecordsAsk("a", 1, bytes(16), 2, 5)
    assert one.records_asked(asked, now_ms=5_000) is None


def test_of_a_level_only_the_last_write_is_kept_and_may_be_asked_for() -> None:
    one = voter(remembered={}, founder=True)
    assert vote(one, ask(rows=(Minted(LEVEL, 0, 0),))).stored == (Stored(LEVEL, 0, 0, 0),)
    assert vote(one, ask(rows=(Minted(LEVEL, 7, 30),))).stored == (Stored(LEVEL, 7, 0, 30),)
    assert vote(one, ask(rows=(Minted(LEVEL, 9, 10),))).stored == (Stored(LEVEL, 9, 0, 10),)
    assert vote(one, ask(rows=(Minted(LEVEL, 8, 50),))).stored == ()
    assert vote(one, ask(rows=(Minted(LEVEL, 0, 0),))).stored == (Stored(LEVEL, 9, 0, 10),)
    assert len(one.records) == 1


def test_what_is_forgotten_is_never_stored_again() -> None:
    one = voter()
    assert vote(one, ask(rows=(Minted(SHORT, window(2_000), 5),)), 1_500).stored
    one.tidy(now_ms=11_501, wall_ms=11_501)
    assert len(one.records) == 0
    late = one.asked(
        ask(2, rows=(Minted(SHORT, window(2_000), 5), Minted(SHORT, window(3_000), 5))),
        now_ms=11_600,
        wall_ms=WALL_MS + 2_500,
    )[0]
    assert [row.window for row in late.stored] == [window(3_000)]


def test_a_volatile_window_of_ten_seconds_is_never_stored_by_a_voter_that_booted_in_it() -> None:
    key = "s#tokens/10000"
    began = WALL_MS // 10_000
    one = voter(remembered={}, volatile=True, founder=True)
    row = Minted(key, began, 5)
    for now_ms in (1_200, 9_000, 12_200):
        wall_ms = WALL_MS + now_ms
        assert one.asked(ask(rows=(row,)), now_ms=now_ms, wall_ms=wall_ms)[0].stored == ()
    following = Minted(key, began + 1, 5)
    wall_ms = (began + 1) * 10_000
    given = one.asked(ask(rows=(following,)), now_ms=wall_ms - WALL_MS, wall_ms=wall_ms)[0]
    assert [row.window for row in given.stored] == [began + 1]


def test_a_clock_that_was_far_ahead_at_boot_does_not_blind_a_voter_for_long() -> None:
    one = voter()
    back_ms = WALL_MS - 216_000
    rows = tuple(Minted(SHORT, (back_ms + at_ms) // 1_000, 5) for at_ms in (14_000, 15_000))
    asked = ask(rows=rows)
    assert one.asked(asked, now_ms=11_099, wall_ms=back_ms + 14_500)[0].stored == ()
    stored = one.asked(asked, now_ms=11_101, wall_ms=back_ms + 14_501)[0].stored
    assert stored == (Stored(SHORT, rows[1].window, 0, 5),)


def blinded(tellers: str) -> Voter:
    """Return one that booted at 8 s, and learned at 10 s from others that booted at 0 with clocks far ahead."""
    one = Voter(Life("b", 2), now_ms=8_000, wall_ms=WALL_MS + 8_000, remembered={})
    one.roster = ROSTER
    others = {
        name: Voter(Life(name, 1), now_ms=0, wall_ms=WALL_MS + 216_000, remembered={})
        for name in tellers
    }
    for name, other in others.items():
        other.roster, other.founder = ROSTER, True
        for _ in range(2):
            for asked, records_ask in other.asks(now_ms=9_000):
                tell = (
                    others[asked].records_asked(records_ask, now_ms=9_000)
                    if asked in others
                    else None
                )
                if tell is not None:
                    other.records_told(tell, now_ms=9_000)
        assert name in "ac"
    for name, records_ask in one.asks(now_ms=10_000):
        if name in others:
            tell = others[name].records_asked(records_ask, now_ms=10_000)
            assert tell is not None
            one.records_told(tell, now_ms=10_000)
    return one


def test_what_others_forgot_blinds_for_as_long_as_it_blinds_them_whether_enough_of_them_told() -> (
    None
):
    # Their blindness is over at 11 s and a little; that of its own boot would last until 19 s, if its clock were wrong.
    for tellers in ("a", "ac"):
        one = blinded(tellers)
        rows = tuple(Minted(SHORT, window(at_ms), 5) for at_ms in (10_000, 13_000))
        asked = ask(rows=rows)
        early = one.asked(asked, now_ms=10_500, wall_ms=WALL_MS + 10_500)[0]
        assert early.stored == ()
        later = one.asked(asked, now_ms=12_900, wall_ms=WALL_MS + 12_900)[0]
        assert [row.window for row in later.stored] == [rows[1].window], tellers


def test_a_voter_without_a_memory_may_have_voted_until_the_time_that_others_tell() -> None:
    hour = "s#tokens/3600000"
    lost, whole = voter(remembered={}, fresh=True), voter(remembered={(hour, 1): 5})
    for one in (lost, whole):
        one.is_later(WALL_MS + 2 * 3_600_000)
    assert lost.memory_ms == WALL_MS + 2 * 3_600_000 + 1_100
    assert whole.memory_ms == 0
    number = (WALL_MS + 2 * 3_600_000) // 3_600_000
    later_ms = 2 * 3_600_000 + 60_000
    for one, stored in ((lost, False), (whole, True)):
        said = vote(one, ask(rows=(Minted(hour, number, 10),)), later_ms)
        assert said.granted
        assert bool(said.stored) is stored
