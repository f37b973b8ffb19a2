from smg_node.processes.limit_leases.lease_messages import LeaseAsk, LeaseGrant, LeaseReport
from smg_node.processes.limit_leases.lease_server import LeaseServer, Refill
from smg_node.processes.limit_leases.leased_share import LeasedShare

MINUTE = 60_000


class Desk:
    """A control process with one limit in windows and one without."""

    def __init__(self, left: int = 20, pool: int = 0, places: int = 5) -> None:
        self.minute = LeasedShare("minute", amount=100, window_ms=MINUTE)
        self.minute.window, self.minute.ends_ms = 7, 8 * MINUTE
        self.minute.left, self.minute.pool = left, pool
        self.places = LeasedShare("places", amount=places, window_ms=0)
        self.places.window, self.places.left, self.places.pool = 0, places, 0
        self.shares: dict[str, LeasedShare] = {"minute": self.minute, "places": self.places}
        self.lender = LeaseServer(self.shares.get)
        for process in ("a", "b"):
            self.hello(process)

    def hello(self, process: str, **open_there: int) -> list[LeaseGrant]:
        self.lender.hear(process, LeaseReport((), open_there), now_ms=0)
        return [word for _, word in self.lender.told()]

    def ask(self, process: str, ask: LeaseAsk, now_ms: int = 100) -> list[tuple[str, LeaseGrant]]:
        self.lender.hear(process, LeaseReport((ask,)), now_ms=now_ms)
        return list(self.lender.told())

    def lend(self, process: str, key: str, cost: int) -> LeaseGrant:
        [(to, word)] = self.ask(process, LeaseAsk(key, 0, least=cost, waits=cost, wants=cost))
        assert to == process
        return word


def test_what_is_lent_is_charged_to_the_node_before_it_is_told() -> None:
    desk = Desk(left=20)
    word = desk.lend("a", "minute", 5)
    assert (word.given, word.window, word.ends_ms, word.dry) == (5, 7, 8 * MINUTE, False)
    assert (desk.minute.left, desk.minute.spent) == (15, 5)
    assert word.pool == 15, "what is left besides"


def test_what_is_lent_may_leave_the_node_low_which_its_share_says() -> None:
    desk = Desk(left=20)
    desk.minute.low = 15
    desk.lend("a", "minute", 5)
    assert (desk.minute.left, desk.minute.wants_more) == (15, False)
    desk.lend("b", "minute", 1)
    assert desk.minute.wants_more


def test_slices_shrink_with_what_there_is_and_the_last_right_is_lent() -> None:
    desk = Desk(left=19)
    given = []
    for _ in range(20):
        [(_, word)] = desk.ask("a", LeaseAsk("minute", 1, least=1, waits=1, wants=50))
        given.append(word.given)
    assert given[0] == 4, "one, and a sixth of the rest"
    assert sum(given) == 19
    assert given == sorted(given, reverse=True)
    assert given.index(0) > 8, "the rest goes one by one"


def test_who_finds_too_little_is_answered_when_others_have_given_back_what_they_do_not_use() -> (
    None
):
    desk = Desk(left=6)
    held = desk.lend("b", "minute", 6)
    [(to, recall)] = desk.ask("a", LeaseAsk("minute", 0, least=2, waits=2, wants=2))
    assert (to, recall.recall, recall.answers, recall.given) == ("b", True, False, 0)
    [(to, word)] = desk.ask("b", LeaseAsk("minute", held.term, back=4, recalled=True))
    assert (to, word.given) == ("a", 2)
    assert desk.minute.left == 2


def test_who_finds_nothing_anywhere_is_told_so_and_nobody_is_asked_twice_at_once() -> None:
    desk = Desk(left=3)
    held = desk.lend("b", "minute", 3)
    desk.ask("a", LeaseAsk("minute", 0, least=1, waits=1, wants=1))
    [(to, word)] = desk.ask("b", LeaseAsk("minute", held.term, recalled=True))
    assert (to, word.given, word.pool, word.dry) == ("a", 0, 0, True)
    [(to, word)] = desk.ask("a", LeaseAsk("minute", 0, least=1, waits=1, wants=1), now_ms=110)
    assert (to, word.dry) == ("a", True), "b has just said that it has nothing"
    [(to, word)] = desk.ask("a", LeaseAsk("minute", 0, least=1, waits=1, wants=1), now_ms=121)
    assert (to, word.recall) == ("b", True)


def test_a_process_that_dies_while_it_is_asked_leaves_nobody_waiting() -> None:
    desk = Desk(left=3)
    desk.lend("b", "minute", 3)
    desk.ask("a", LeaseAsk("minute", 0, least=1, waits=1, wants=1))
    desk.lender.closed("b", gone=True, now_ms=150)
    [(to, word)] = desk.lender.told()
    assert (to, word.dry) == ("a", True)
    assert desk.minute.spent == 3, "what it had counts as spent"


def test_two_that_both_have_a_part_of_what_they_need_do_not_wait_for_each_other() -> None:
    desk = Desk(left=6)
    a, b = desk.lend("a", "minute", 3), desk.lend("b", "minute", 3)
    desk.ask("a", LeaseAsk("minute", a.term, least=2, waits=2, wants=2))
    desk.ask("b", LeaseAsk("minute", b.term, least=2, waits=2, wants=2))
    [(to, word)] = desk.ask(
        "b", LeaseAsk("minute", b.term, back=3, least=5, waits=5, recalled=True)
    )
    assert (to, word.given) == ("a", 2), "so much it was short of"
    [(to, word)] = desk.ask("a", LeaseAsk("minute", a.term, back=3, recalled=True))
    assert (to, word.dry) == ("b", True)
    [(to, word)] = desk.ask("a", LeaseAsk("minute", a.term, least=3, waits=3, wants=3), now_ms=101)
    assert (to, word.given) == ("a", 3)


def test_rights_of_the_cluster_are_asked_for_once_for_each_who_is_short() -> None:
    desk = Desk(left=0, pool=10)
    assert not desk.ask("a", LeaseAsk("minute", 0, least=4, waits=4, wants=4))
    assert not desk.ask("b", LeaseAsk("minute", 0, least=1, waits=2, wants=2))
    assert desk.lender.refills() == [Refill("minute", 4)]
    desk.minute.left, desk.minute.pool = 4, 6
    desk.lender.refilled("minute", now_ms=130)
    [(to, word)] = desk.lender.told()
    assert (to, word.given) == ("a", 4)
    assert desk.lender.refills() == [Refill("minute", 2)]
    desk.lender.refilled("minute", now_ms=230)
    [(to, word)] = desk.lender.told()
    assert (to, word.dry) == ("b", True)
    assert not desk.lender.refills()


def test_where_the_cluster_has_plenty_it_is_asked_for_all_that_is_of_use() -> None:
    desk = Desk(left=3, pool=1_000)
    assert not desk.ask("a", LeaseAsk("minute", 0, least=4, waits=4, wants=40))
    assert desk.lender.refills() == [Refill("minute", 40)]
    desk.minute.left = 40
    desk.lender.refilled("minute", now_ms=130)
    [(_, word)] = desk.lender.told()
    assert word.given == 40
    assert not desk.ask("a", LeaseAsk("minute", word.term, wants=40)), "ahead as well"
    desk.lender.refilled("minute", now_ms=160)
    [(_, word)] = desk.lender.told()
    assert (word.given, word.dry) == (0, False)


def test_what_comes_back_for_another_window_is_nobodys() -> None:
    desk = Desk(left=20)
    first = desk.lend("a", "minute", 5)
    desk.minute.window, desk.minute.left, desk.minute.spent = 8, 10, 0
    second = desk.lend("a", "minute", 2)
    assert second.term != first.term
    desk.ask("a", LeaseAsk("minute", first.term, back=5))
    assert (desk.minute.left, desk.minute.spent) == (8, 2)
    desk.ask("a", LeaseAsk("minute", second.term, back=2))
    assert (desk.minute.left, desk.minute.spent) == (10, 0)


def test_what_comes_back_for_the_share_of_an_earlier_life_is_nobodys() -> None:
    desk = Desk(left=20)
    word = desk.lend("a", "minute", 5)
    again = LeasedShare("minute", amount=100, window_ms=MINUTE)
    again.window, again.left = 7, 3
    desk.shares["minute"] = again
    desk.lend("a", "minute", 1)
    desk.ask("a", LeaseAsk("minute", word.term, back=5))
    assert again.left == 2


def test_nothing_comes_back_that_was_not_lent() -> None:
    desk = Desk(left=20)
    word = desk.lend("a", "minute", 5)
    desk.ask("a", LeaseAsk("minute", word.term, back=500))
    assert (desk.minute.left, desk.minute.spent) == (20, 0)


def test_what_a_dead_process_had_open_is_free_again() -> None:
    desk = Desk(places=5)
    desk.lend("a", "places", 3)
    desk.lender.closed("a", gone=True, now_ms=10)
    assert (desk.places.left, desk.places.spent) == (5, 0)


def test_places_are_not_lent_before_all_that_live_have_said_what_they_have_open() -> None:
    desk = Desk(places=2)
    desk.lend("a", "places", 2)
    desk.lender.closed("a", gone=False, now_ms=10)
    assert not desk.ask("b", LeaseAsk("places", 0, least=1, waits=1, wants=1))
    assert desk.places.left == 0, "it may still have them open"
    words = desk.hello("a", places=1)
    assert [word.given for word in words if word.answers] == [1]
    assert (desk.places.left, desk.lender.lent("places")) == (0, 2)


def test_a_new_control_process_hears_first_what_is_open() -> None:
    desk = Desk(places=2)
    desk.lender.expect(["old"])
    assert not desk.ask("b", LeaseAsk("places", 0, least=1, waits=1, wants=1))
    desk.lender.hear("old", LeaseReport((), {"places": 2}), now_ms=20)
    told = dict(desk.lender.told())
    assert told["b"].dry
    assert told["old"].term
    assert not told["old"].answers
    desk.ask("old", LeaseAsk("places", told["old"].term, back=1))
    assert desk.lend("b", "places", 1).given == 1


def test_what_was_asked_for_and_what_is_owed_is_told_on() -> None:
    desk = Desk(left=20)
    desk.ask("a", LeaseAsk("minute", 0, offered=9, owed=4, wants=1, least=1, waits=1))
    assert (desk.minute.offered, desk.minute.debt) == (9, 4)


def test_a_limit_that_is_gone_is_refused() -> None:
    desk = Desk()
    del desk.shares["minute"]
    assert desk.lend("a", "minute", 1).given == 0
    assert not desk.ask("a", LeaseAsk("minute", 3, back=4))
