from smg_node.admission.charging import admit, give_back
from smg_node.processes.limit_leases.lease_messages import LeaseAsk, LeaseGrant
from smg_node.processes.limit_leases.leased_limit import (
    FORGET_MS,
    IDLE_MS,
    KEEP_MS,
    PACE_MS,
    LeasedLimit,
)
from smg_node.processes.limit_leases.leased_share import ASLEEP, LeasedShare

MINUTE = 60_000


def word(term: int = 1, given: int = 0, **fields: int | bool) -> LeaseGrant:
    told = {"pool": 5, "window": 7, "ends_ms": 8 * MINUTE, "window_ms": MINUTE, "debt": 0}
    return LeaseGrant("k", term, given, 100, state="exact", **(told | fields))  # type: ignore[arg-type]  # fields of several types, by name


class Holder:
    """A loan in a process of which a test says what time it is."""

    def __init__(self, window_ms: int = MINUTE) -> None:
        self.now_ms = 1_000
        self.loan = LeasedLimit(LeasedShare("k", amount=100, window_ms=window_ms), self.now_ms)

    @property
    def share(self) -> LeasedShare:
        return self.loan.share

    def take(self, told: LeaseGrant) -> None:
        self.loan.take(told, now_ms=self.now_ms, wall_ms=7 * MINUTE + self.now_ms)

    def look(self, passed_ms: int = 0, *, first: int = 0, waits: int = 0) -> LeaseAsk | None:
        self.now_ms += passed_ms
        wall_ms = 7 * MINUTE + self.now_ms
        return self.loan.ask(self.now_ms, wall_ms, first=first, waits=max(first, waits))


def test_who_waits_is_asked_for_at_once_and_only_one_question_is_under_way() -> None:
    holder = Holder()
    ask = holder.look(first=3, waits=4)
    assert ask is not None
    assert (ask.least, ask.waits, ask.wants) == (3, 4, 8)
    assert holder.look(first=3, waits=4) is None
    holder.take(word(given=2))
    ask = holder.look(first=3, waits=4)
    assert ask is not None
    assert (ask.term, ask.least, ask.waits) == (1, 1, 2)


def test_a_question_that_nobody_answers_is_asked_again() -> None:
    holder = Holder()
    assert holder.look(first=1)
    assert holder.look(400, first=1) is None
    assert holder.look(101, first=1)


def test_what_is_used_fast_is_asked_for_before_it_is_gone() -> None:
    holder = Holder()
    holder.take(word(given=100))
    asks = []
    for _ in range(20):
        for _ in range(4):
            admit([holder.share], 1)
        ask = holder.look(PACE_MS)
        if ask is not None and ask.wants:
            asks.append(ask)
            holder.take(word(given=ask.wants))
    assert asks
    assert all(not ask.waits for ask in asks)
    assert holder.share.left > 0
    assert sum(ask.offered for ask in asks) <= 80


def test_what_nobody_uses_goes_back() -> None:
    holder = Holder()
    holder.take(word(given=5))
    admit([holder.share], 2)
    holder.look(20)
    ask = holder.look(IDLE_MS)
    assert ask is not None
    assert (ask.back, ask.offered, holder.share.left) == (3, 2, 0)


def test_what_is_little_stays_a_while_for_who_comes_now_and_then() -> None:
    holder = Holder()
    ask = holder.look(first=2)
    assert ask is not None
    assert ask.wants == 4
    holder.take(word(given=4, pool=64 * 20))
    admit([holder.share], 2)
    assert holder.look(20) is None
    assert holder.look(KEEP_MS - 100) is None
    ask = holder.look(100)
    assert ask is not None
    assert ask.back == 2
    ask = holder.look(PACE_MS, first=2)
    assert ask is not None
    assert ask.wants == 16, "where there is plenty, some more is asked for"


def test_what_a_long_answer_gives_back_does_not_stay() -> None:
    holder = Holder()
    holder.take(word(given=300))
    window = holder.share.window
    admit([holder.share], 300)
    holder.look(20)
    give_back(holder.share, window, 250)
    backs = [ask.back for _ in range(40) if (ask := holder.look(100)) is not None]
    assert sum(backs) == 250


def test_all_that_is_not_in_use_goes_back_when_it_is_needed_elsewhere() -> None:
    holder = Holder()
    holder.take(word(given=5))
    holder.take(word(recall=True, answers=False))
    ask = holder.look(first=9)
    assert ask is not None
    assert (ask.back, ask.recalled, ask.wants, ask.least) == (5, True, 0, 9)
    holder.take(word(recall=True, answers=False))
    ask = holder.look()
    assert ask is not None, "that there is nothing is said as well"
    assert (ask.back, ask.recalled) == (0, True)


def test_a_new_term_is_another_share_and_nothing_of_the_old_one_counts_in_it() -> None:
    holder = Holder()
    holder.take(word(term=1, given=5))
    old = holder.share
    admit([old], 2)
    holder.take(word(term=2, given=4))
    assert holder.share is not old
    assert (old.left, old.window) == (0, ASLEEP)
    give_back(old, 7, 2)
    assert (holder.share.left, old.left) == (4, 0)


def test_a_window_that_has_ended_leaves_nothing_but_what_is_owed() -> None:
    holder = Holder()
    holder.take(word(given=5))
    holder.share.debt = 3
    assert holder.loan.over(8 * MINUTE)
    holder.loan.turn()
    assert (holder.share.left, holder.share.window, holder.share.debt) == (0, ASLEEP, 3)
    ask = holder.look()
    assert ask is not None
    assert ask.owed == 3
    assert holder.look() is None, "that is said once"


def test_a_word_of_a_window_that_is_over_gives_nothing() -> None:
    holder = Holder()
    holder.take(word(given=5, ends_ms=7 * MINUTE))
    assert holder.share.left == 0
    assert holder.share.window == ASLEEP


def test_what_is_open_stays_open_when_the_control_process_is_another_one() -> None:
    holder = Holder(window_ms=0)
    holder.take(word(given=3, window_ms=0, window=0, ends_ms=0))
    share = holder.share
    admit([share], 2)
    assert holder.loan.begin_anew() == 2
    assert share is holder.share
    assert share.left == 0
    give_back(share, 0, 1)
    holder.take(word(term=9, window_ms=0, window=0, ends_ms=0, answers=False))
    assert (share.left, share.spent) == (1, 1)
    assert holder.look(1) is None
    ask = holder.look(IDLE_MS + 1)
    assert ask is not None
    assert (ask.term, ask.back) == (9, 1)


def test_that_there_is_nothing_is_believed_for_a_moment() -> None:
    holder = Holder()
    holder.take(word(pool=0, dry=True))
    holder.loan.refresh(holder.now_ms + PACE_MS - 1)
    assert holder.share.pool == 0
    holder.loan.refresh(holder.now_ms + PACE_MS)
    assert holder.share.pool == 1


def test_what_is_open_is_not_forgotten() -> None:
    holder = Holder(window_ms=0)
    holder.take(word(given=1, window_ms=0, window=0, ends_ms=0))
    admit([holder.share], 1)
    holder.look(20)
    holder.look(10 * FORGET_MS)
    assert not holder.loan.forgettable(holder.now_ms)
    give_back(holder.share, 0, 1)
    holder.look(20)
    assert holder.loan.forgettable(holder.now_ms)
