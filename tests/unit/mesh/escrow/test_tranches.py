"""How much of a long window an owner mints at once: little enough to be lost, enough to be quick."""

import pytest

from smg_mesh.escrow.limit_model import Life, Limit
from smg_mesh.escrow.messages.messages import AskRow
from smg_mesh.escrow.owning.window_pool import Pool

ME = Life("a", 1)
AMOUNT = 100_000


def pool(window_ms: int) -> Pool:
    limit = Limit(f"tenant=a#tokens/{window_ms}", "tokens", AMOUNT, window_ms, "strict", 0.5)
    made = Pool(limit, 0, 1)
    made.allow(AMOUNT // 2)
    return made


def ask(one: Pool, *, per_s: int, wants: int = 0, sent_ms: int = 0) -> None:
    row = AskRow(1, one.limit.key, 0, 0, 0, 0, per_s * 1_000, wants=wants)
    one.learn(ME, row, sent_ms, now_ms=sent_ms)


def minted(one: Pool, total: int) -> None:
    one.minted = one.made = total


def first_tranche(one: Pool) -> int | None:
    assert one.wish(next_one=False) == 0
    minted(one, 0)
    return one.wish(next_one=False)


@pytest.mark.parametrize(
    ("window_ms", "per_s", "tranche"),
    [
        (60_000, 0, 1_000),
        (60_000, 300, 1_000),
        (60_000, 5_000, 2_500),
        (300_000, 0, 200),
        (300_000, 300, 200),
        (300_000, 6_000, 2_000),
        (86_400_000, 2, 200),
    ],
)
def test_a_tranche_is_some_demand_or_a_small_part_of_the_amount(
    window_ms: int, per_s: int, tranche: int
) -> None:
    one = pool(window_ms)
    ask(one, per_s=per_s)
    assert first_tranche(one) == tranche


def test_what_somebody_waits_for_is_minted_however_large_it_is() -> None:
    one = pool(86_400_000)
    ask(one, per_s=1, wants=30_000)
    assert first_tranche(one) == 30_000


def test_the_next_tranche_is_wished_for_when_half_of_one_is_left() -> None:
    one = pool(300_000)
    ask(one, per_s=1_500)
    assert first_tranche(one) == 500
    minted(one, 500)
    assert one.wish(next_one=False) is None
    ask(one, per_s=1_500, wants=249, sent_ms=1)
    one.meet(one.customers[ME], 249, wall_ms=0)
    assert one.left == 251
    assert one.wish(next_one=False) is None
    ask(one, per_s=1_500, wants=250, sent_ms=2)
    one.meet(one.customers[ME], 1, wall_ms=0)
    assert one.left <= 250
    assert one.wish(next_one=False) == 1_000


@pytest.mark.parametrize("window_ms", [2_100, 60_000, 300_000, 86_400_000])
def test_an_owner_never_takes_more_with_it_than_a_second_of_demand_or_a_hundredth_and_half(
    window_ms: int,
) -> None:
    for per_s in (0, 10, 1_000, 10_000):
        one = pool(window_ms)
        ask(one, per_s=per_s)
        total = first_tranche(one)
        assert total is not None
        assert total <= max(per_s, AMOUNT // 100)
