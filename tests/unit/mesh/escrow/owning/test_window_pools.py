"""Window pools and spendable shares of an owner, each by itself, and the messages that carry them."""

import msgspec
import pytest

from smg_mesh.escrow.limit_model import Life, Limit, Roster
from smg_mesh.escrow.messages.messages import (
    AskRow,
    GiveRow,
    Message,
    RightsAsk,
    RightsGive,
    decode,
    encode,
)
from smg_mesh.escrow.owning.pool_customer import Customer
from smg_mesh.escrow.owning.window_pool import Pool
from smg_mesh.escrow.roster.roster_values import changed
from smg_mesh.escrow.spendable_share import Share
from smg_mesh.escrow.spending.spending_ledger import Ledger
from support.rights.rights_world import Defined

SHORT = Limit("#requests/1000", "requests", 1_000, 1_000, mode="strict")
LONG = Limit("#requests/60000", "requests", 1_000, 60_000, mode="strict")


def roster(names: str) -> Roster:
    return Roster(bytes(16), 1, tuple(names), (len(names),) * len(names))


def ask(**changes: int) -> AskRow:
    fields = {"term": 1, "window": 5, "given": 0, "returned": 0, "spent": 0, "demand_per_s": 0}
    return AskRow(key=SHORT.key, **{**fields, **changes})


def pool(made: int = 500, limit: Limit = SHORT) -> Pool:
    one = Pool(limit, 5, 1)
    one.made = one.minted = one.ceiling = made
    return one


def test_a_share_calls_once_until_it_was_looked_at() -> None:
    calls = []
    share = Share(SHORT, lambda: calls.append(share.wants_more))
    for _ in range(3):
        share.wants_more = True
    assert (calls, share.wants_more) == ([True], True)
    share.wants_more = False
    assert calls == [True]
    share.wants_more = True
    assert calls == [True, True]
    Share(SHORT).wants_more = True


def test_who_calls_is_looked_at_on_the_beat_and_all_who_called_together() -> None:
    keys = [f"key={name}#requests/1000" for name in "abc"]
    limits = Defined(*(Limit(key, "requests", 1_000, 1_000, mode="strict") for key in keys))
    called: list[int] = []
    ledger = Ledger(Life("a", 1), limits, now_ms=0, wall_ms=0, called=lambda: called.append(1))
    ledger.follow(roster("ab"), 2, wall_ms=-86_400_000)
    shares = [ledger.share(limit, now_ms=0, wall_ms=0) for limit in map(limits.get, keys) if limit]

    def tick(now_ms: int) -> None:
        ledger.tick(now_ms=now_ms, wall_ms=now_ms, owners=lambda _: "b", majority=True)

    tick(5)
    due_ms = ledger.due_ms(5)
    assert due_ms is not None
    assert due_ms > 25
    for now_ms, share in zip((13, 14, 15), shares, strict=True):
        share.wants_more = True
        ledger.hear(now_ms)
        assert ledger.due_ms(now_ms) == 15 + (now_ms == 15)
    assert len(called) == 3
    tick(15)
    assert [share.wants_more for share in shares] == [False] * 3


def test_an_ask_that_comes_twice_is_answered_once() -> None:
    one, life = pool(), Life("b", 1)
    row = ask(wants=57, demand_per_s=1_900_000)
    for _ in range(3):
        customer = one.learn(life, row, 100, now_ms=0)
        one.meet(customer, 0, wall_ms=5_100)
        assert one.row_for(life).given == 57
    assert one.left == 443


def test_an_older_ask_only_raises_totals() -> None:
    one, life = pool(), Life("b", 1)
    one.learn(life, ask(wants=10, returned=5), 100, now_ms=0)
    customer = one.learn(life, ask(wants=400, returned=3, demand_per_s=9), 90, now_ms=0)
    assert (customer.hungry, customer.returned, customer.demand) == (10, 5, 0)
    assert one.left == 505


def test_at_most_a_third_is_given_ahead_and_all_that_somebody_waits_for() -> None:
    one = pool(300)
    ahead = one.learn(Life("b", 1), ask(wants=250), 1, now_ms=0)
    one.meet(ahead, 0, wall_ms=5_000)
    assert ahead.given == 100
    waiting = one.learn(Life("c", 1), ask(wants=150), 1, now_ms=0)
    one.meet(waiting, 150, wall_ms=5_000)
    assert waiting.given == 150


def test_a_life_that_came_after_another_is_given_to_anew_and_old_terms_do_not_count() -> None:
    one = pool()
    first = one.learn(Life("b", 1), ask(wants=30), 1, now_ms=0)
    one.meet(first, 0, wall_ms=5_000)
    second = one.learn(Life("b", 2), ask(wants=30, given=30), 1, now_ms=0)
    one.meet(second, 0, wall_ms=5_000)
    assert (first.given, second.given, second.returned) == (30, 30, 0)
    other = one.learn(Life("c", 1), ask(term=9, wants=30, given=30, returned=99), 1, now_ms=0)
    one.meet(other, 0, wall_ms=5_000)
    assert (other.given, other.returned) == (30, 0)


def test_what_lapsed_raises_what_may_be_minted_once() -> None:
    one = pool(100, LONG)
    for _ in range(2):
        one.learn(Life("b", 1), ask(lapsed=16), 1, now_ms=0)
        one.learn(Life("c", 1), ask(lapsed=10), 1, now_ms=0)
    one.allow(100)
    assert one.ceiling == 126
    assert one.unminted == 26


def test_a_limit_of_many_lives_fits_into_its_messages() -> None:
    rows = tuple(ask(window=index, wants=5, lapsed=3, waits=1) for index in range(3))
    gives = (GiveRow(1, SHORT.key, 5, 10, 20, 1_000),)
    said: list[Message] = [RightsAsk("b", 7, 123, rows), RightsGive("a", 7, 123, gives)]
    packets = encode(said)
    assert [message for packet in packets for message in decode(packet)] == said


def test_a_give_to_another_life_or_of_an_unknown_limit_changes_nothing() -> None:
    ledger = Ledger(Life("b", 2), Defined(SHORT), now_ms=0, wall_ms=5_000)
    give = GiveRow(1, SHORT.key, 5, 10, 20, 1_000)
    stranger = GiveRow(1, "x#requests/1000", 5, 10, 20, 1_000)
    far = GiveRow(1, SHORT.key, 9, 10, 20, 1_000)
    assert ledger.given(RightsGive("a", 1, 0, (give,)), now_ms=0, wall_ms=5_000) == []
    assert ledger.given(RightsGive("a", 2, 0, (stranger, far)), now_ms=0, wall_ms=5_000) == []
    assert ledger.rows() == []
    shares = ledger.given(RightsGive("a", 2, 0, (give,)), now_ms=0, wall_ms=5_000)
    assert [share.left for share in shares] == [10]
    again = ledger.given(RightsGive("a", 2, 0, (give, give)), now_ms=1, wall_ms=5_001)
    assert again == []


def test_a_window_that_began_before_a_roster_counts_the_whole_part_that_stands() -> None:
    limit = Limit("#tokens/5000", "tokens", 40_000, 5_000, standing=0.5)
    grown = Roster(bytes(16), 3, tuple("abcdef"), (6,) * 6, since_ms=84_188)
    before = Roster(bytes(16), 2, tuple("abcde"), (5,) * 5)
    minted = limit.mintable(before, before.names)
    assert limit.mintable(grown, grown.names, began_ms=80_000) == minted == 20_000
    assert limit.mintable(grown, grown.names, began_ms=85_000) == 20_002
    again = changed(grown, "join", "g", since_ms=0)
    assert again is not None
    assert again.since_ms == 84_188


def test_names_that_have_not_heard_of_a_change_count_whole_in_windows_before_a_roster() -> None:
    limit = Limit("#requests/1000", "requests", 1_000, 1_000, standing=0.2, older=((1_000, 0.5),))
    grown = Roster(bytes(16), 3, tuple("abcdef"), (6,) * 6, since_ms=9_000)
    assert limit.mintable(grown, grown.names, began_ms=8_000) == 500
    assert limit.mintable(grown, grown.names, began_ms=9_000) == 802


def test_a_window_that_is_over_here_is_not_raised_for_who_is_still_in_it() -> None:
    one = pool(400)
    one.allow(400)
    one.limit = Limit(SHORT.key, "requests", 2_400, 1_000, older=((800, 0.5),))
    one.allow(1_920, over=True)
    assert one.ceiling == 400
    one.allow(1_920)
    assert one.ceiling == 1_920
    one.allow(100, over=True)
    assert one.ceiling == 100


@pytest.mark.parametrize(
    ("older", "ceiling"),
    [((), 1_920), (((800, 0.5),), 320), (((9_000, 0.5),), 1_920), (((800, 0.5), (300, 0.5)), 0)],
)
def test_who_does_not_know_what_was_allowed_in_a_window_that_is_over_goes_by_the_least(
    older: tuple[tuple[int, float], ...], ceiling: int
) -> None:
    one = Pool(Limit(SHORT.key, "requests", 2_400, 1_000, older=older), 9, 7)
    one.allow(1_920, over=True)
    assert one.ceiling == ceiling
    one.allow(1_920, over=True)
    assert one.ceiling == ceiling
    one.learn(Life("a", 1), ask(lapsed=40), 10, now_ms=10)
    one.allow(1_920, over=True)
    assert one.ceiling == ceiling + 40


def test_two_who_are_hungry_never_reserve_more_for_each_other_than_is_left() -> None:
    one = pool(500)
    one.standing = 100
    rows = {name: ask(demand_per_s=1_000_000, wants=300, waits=0) for name in "ab"}
    for name in "abc":
        one.learn(Life(name, 1), rows.get(name, ask()), 10, now_ms=10)
    for at_ms in range(5_000, 5_900, 50):
        for name in rows:
            given = one.customers[Life(name, 1)].given
            row = msgspec.structs.replace(rows[name], given=given)
            customer = one.learn(Life(name, 1), row, at_ms, now_ms=at_ms)
            one.meet(customer, 0, wall_ms=at_ms)
        one.feed(now_ms=at_ms, wall_ms=at_ms)
    assert one.left == 0


def test_who_sleeps_is_called_although_it_was_given_at_the_opening() -> None:
    one = pool()
    before = {Life("a", 1): Customer(), Life("b", 1): Customer()}
    one.open(before)
    one.learn(Life("a", 1), ask(), 10, now_ms=10)
    assert one.customers[Life("a", 1)].spoke
    assert not one.customers[Life("b", 1)].spoke
