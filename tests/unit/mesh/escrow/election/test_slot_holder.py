from smg_mesh.escrow.election.slot_holder import Holder
from smg_mesh.escrow.election.voter import PROMISED, Promise
from smg_mesh.escrow.limit_model import Life, score
from smg_mesh.escrow.messages.messages import LeaseAsk, LeaseVote, Stored
from smg_mesh.escrow.roster.roster_values import first

NAMES = ("a", "b", "c")
ROSTER = first(bytes(16), NAMES)
SLOT = 5
RANKED = sorted(NAMES, key=lambda name: -score(SLOT, name))
ME = Life(RANKED[0], 1)
WALL_MS = 1_700_000_000_000
SHORT, MINUTE, LEVEL = "s#requests/1000", "s#requests/60000", "s#concurrent/0\x1fa"


def step(
    holder: Holder,
    now_ms: int,
    *,
    promise: Promise | None = None,
    alive: tuple[str, ...] = NAMES,
    wall_ms: int | None = None,
) -> LeaseAsk | None:
    wall_ms = WALL_MS + now_ms if wall_ms is None else wall_ms
    return holder.step(roster=ROSTER, alive=alive, promise=promise, now_ms=now_ms, wall_ms=wall_ms)


def vote(
    ask: LeaseAsk,
    voter: str,
    *,
    why: str = "",
    seen: int = 0,
    stored: tuple[Stored, ...] = (),
    basis: bytes = b"basis",
    adopted_ms: int = 10,
) -> LeaseVote:
    return LeaseVote(
        SLOT,
        ask.term,
        voter,
        1,
        not why,
        max(seen, ask.term),
        ask.sent_ms,
        bytes(16),
        1,
        basis,
        adopted_ms,
        stored,
        why,
    )


def owner(holder: Holder) -> LeaseAsk:
    step(holder, 0)
    ask = step(holder, 100)
    assert ask is not None
    for name in NAMES[:2]:
        holder.voted(vote(ask, name), now_ms=105)
    assert holder.term(now_ms=105) == ask.term
    return ask


def minted(holder: Holder, key: str, window: int, total: int, bases: tuple[int, ...]) -> None:
    """Let voters store a total, with what each had before."""
    holder.mint(key, window, total, urgent=True)
    ask = step(holder, 200)
    assert ask is not None
    for name, base in zip(NAMES, bases, strict=False):
        row = Stored(key, window, base, max(base, total))
        holder.voted(vote(ask, name, stored=(row,)), now_ms=205)


def test_the_best_candidate_asks_first_and_the_others_after_it() -> None:
    for rank, name in enumerate(RANKED):
        holder = Holder(SLOT, Life(name, 1))
        assert step(holder, 0) is None
        assert step(holder, 99 + 150 * rank) is None
        assert step(holder, 100 + 150 * rank) is not None


def test_nobody_asks_while_its_own_voter_has_promised_or_may_have_or_sees_no_majority() -> None:
    other = Promise("z", 1, 1)
    unknown = Promise("", 0, 0)
    for promise, alive in ((other, NAMES), (unknown, NAMES), (None, (ME.name,))):
        holder = Holder(SLOT, ME)
        assert all(
            step(holder, now_ms, promise=promise, alive=alive) is None
            for now_ms in range(0, 3_000, 50)
        )


def test_two_lives_never_stand_under_one_term() -> None:
    terms = set()
    for boot in range(50):
        holder = Holder(SLOT, Life(ME.name, boot))
        step(holder, 0)
        ask = step(holder, 100)
        assert ask is not None
        terms.add(ask.term)
    assert len(terms) == 50


def test_a_lease_ends_before_the_promises_and_its_term_never_comes_back() -> None:
    holder = Holder(SLOT, ME)
    ask = owner(holder)
    assert holder.term(now_ms=999) == ask.term
    assert holder.term(now_ms=1_000) == 0
    renewal = step(holder, 350)
    assert renewal is not None
    holder.voted(vote(renewal, "a"), now_ms=1_050)
    holder.voted(vote(renewal, "b"), now_ms=1_050)
    assert holder.term(now_ms=1_050) == 0
    again = step(holder, 1_200)
    assert again is not None
    assert again.term > ask.term


def test_a_renewal_is_sent_four_times_a_second_and_repeated_if_it_is_not_heard() -> None:
    holder = Holder(SLOT, ME)
    owner(holder)
    sent = []
    for now_ms in range(105, 1_100, 5):
        ask = step(holder, now_ms)
        if ask is not None:
            sent.append(now_ms)
            for name in NAMES:
                holder.voted(vote(ask, name), now_ms=now_ms)
    assert sent == [350, 600, 850]
    first_ask = step(holder, 1_100)
    assert first_ask is not None
    assert step(holder, 1_170) is None
    assert step(holder, 1_180) is not None


def test_what_others_may_have_used_is_the_base_and_the_rest_is_this_owners() -> None:
    holder = Holder(SLOT, ME)
    owner(holder)
    window = WALL_MS // 60_000
    assert (holder.minted(MINUTE, window), holder.base(MINUTE, window)) == (-1, -1)
    minted(holder, MINUTE, window, 100, (30,))
    assert holder.minted(MINUTE, window) == -1
    minted(holder, MINUTE, window, 101, (30, 40))
    assert holder.base(MINUTE, window) == 40
    assert holder.made(MINUTE, window) == 61
    assert holder.minted(MINUTE, window) == 101


def test_a_window_that_was_minted_whole_gives_a_new_owner_nothing() -> None:
    holder = Holder(SLOT, ME)
    owner(holder)
    window = WALL_MS // 1_000
    minted(holder, SHORT, window, 500, (500, 500, 500))
    assert (holder.minted(SHORT, window), holder.made(SHORT, window)) == (500, 0)


def test_votes_of_long_ago_do_not_count_for_a_total() -> None:
    holder = Holder(SLOT, ME)
    owner(holder)
    window = WALL_MS // 60_000
    holder.mint(MINUTE, window, 100)
    ask = step(holder, 200)
    assert ask is not None
    holder.voted(vote(ask, "a", stored=(Stored(MINUTE, window, 0, 100),)), now_ms=205)
    late: LeaseAsk | None = None
    for now_ms in range(300, 2_000, 50):
        renewal = step(holder, now_ms)
        if renewal is not None:
            late = renewal if renewal.minted and now_ms > 1_200 else None
            for name in "bc":
                holder.voted(vote(renewal, name), now_ms=now_ms)
        if late is not None:
            break
    assert late is not None
    row = Stored(MINUTE, window, 0, 100)
    holder.voted(vote(late, "b", stored=(row,)), now_ms=late.sent_ms)
    assert holder.made(MINUTE, window) == 0
    holder.voted(vote(late, "c", stored=(row,)), now_ms=late.sent_ms)
    assert holder.made(MINUTE, window) == 100


def test_the_next_window_goes_with_a_renewal_and_what_has_begun_at_once() -> None:
    holder = Holder(SLOT, ME)
    owner(holder)
    window = WALL_MS // 1_000
    holder.mint(SHORT, window + 1, 500)
    assert step(holder, 200) is None
    holder.mint(SHORT, window, 500)
    ask = step(holder, 210)
    assert ask is not None
    assert [row.window for row in ask.minted] == [window + 1, window]
    holder.mint(SHORT, window + 3, 500, urgent=True)
    assert step(holder, 240) is None


def test_a_level_is_the_last_write_that_any_of_a_majority_knows() -> None:
    holder = Holder(SLOT, ME)
    owner(holder)
    holder.mint(LEVEL, 0, 0, urgent=True)
    ask = step(holder, 200)
    assert ask is not None
    holder.voted(vote(ask, "a", stored=(Stored(LEVEL, 3, 0, 8),)), now_ms=205)
    assert holder.level(LEVEL) is None
    holder.voted(vote(ask, "b", stored=(Stored(LEVEL, 4, 0, 2),)), now_ms=205)
    assert holder.level(LEVEL) == (4, 2)


def test_names_are_current_by_their_last_vote() -> None:
    holder = Holder(SLOT, ME)
    owner(holder)
    assert holder.current(b"basis", began_ms=11) == {"a", "b"}
    assert holder.current(b"basis", began_ms=10) == frozenset()
    assert holder.current(b"other", began_ms=11) == frozenset()


def test_an_owner_yields_to_a_better_candidate_at_the_border_of_its_window() -> None:
    holder = Holder(SLOT, Life(RANKED[1], 1))
    step(holder, 0)
    ask = step(holder, 250)
    assert ask is not None
    released = 0
    for now_ms in range(255, 9_000, 5):
        if ask is not None:
            if ask.release:
                released = now_ms
                break
            stored = tuple(Stored(row.key, row.window, 0, row.total) for row in ask.minted)
            for name in NAMES:
                holder.voted(vote(ask, name, stored=stored), now_ms=now_ms)
        holder.mint(SHORT, (WALL_MS + now_ms) // 1_000, 100)
        ask = step(holder, now_ms)
    assert 5_250 <= released <= 6_100
    assert (WALL_MS + released) % 1_000 <= 10
    assert holder.term(now_ms=released) == 0


def test_a_candidate_that_cannot_win_gives_back_what_it_was_promised() -> None:
    holder = Holder(SLOT, ME)
    step(holder, 0)
    ask = step(holder, 100)
    assert ask is not None
    for name in "bc":
        holder.voted(vote(ask, name, why="promised", seen=9 << 16), now_ms=105)
    release = step(holder, 110)
    assert release is not None
    assert (release.release, release.unused) == (True, True)
    assert step(holder, 120) is None
    again = step(holder, 500)
    assert again is not None
    assert again.term > 9 << 16


def test_who_wants_a_slot_no_more_releases_it_once() -> None:
    holder = Holder(SLOT, ME)
    owner(holder)
    release = holder.retire(150)
    assert release is not None
    assert (release.release, release.unused) == (True, False)
    assert holder.retire(160) is None
    assert holder.term(now_ms=160) == 0


def test_candidates_that_hinder_each_other_do_not_meet_for_ever() -> None:
    waits = []
    for boot in range(6):
        holder = Holder(SLOT, Life(ME.name, boot))
        stood = []
        for now_ms in range(0, 2_000, 5):
            ask = step(holder, now_ms)
            if ask is not None and not ask.release:
                stood.append(now_ms)
                for name in "bc":
                    holder.voted(vote(ask, name, why="promised"), now_ms=now_ms)
        waits.append(tuple(stood))
    assert all(len(stood) > 5 for stood in waits)
    assert len(set(waits)) == len(waits)


def test_a_candidate_does_not_insist_when_who_is_left_cannot_make_it_the_owner() -> None:
    names = ("a", "b", "c", "d", "e")
    roster = first(bytes(16), names)
    alive = names[:4]
    me = Life(max(alive, key=lambda name: score(SLOT, name)), 1)
    others = [name for name in alive if name != me.name]
    holder = Holder(SLOT, me)
    asked = None
    for now_ms in (0, 100):
        asked = holder.step(
            roster=roster, alive=alive, promise=None, now_ms=now_ms, wall_ms=WALL_MS
        )
    assert asked is not None
    for name in (me.name, others[0]):
        holder.voted(vote(asked, name), now_ms=105)
    for name in others[1:]:
        holder.voted(vote(asked, name, why=PROMISED), now_ms=105)
    ask = holder.step(
        roster=roster, alive=alive, promise=Promise(*me, asked.term), now_ms=200, wall_ms=WALL_MS
    )
    assert ask is not None
    assert ask.release
    assert ask.unused
