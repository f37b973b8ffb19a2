"""The bill: exact sums of tokens and money."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.vendor.answers.answer import Cost
from smg_chaos.vendor.limits.bill import Bill, Price, Priced, parse_price

PRICE = Price(
    prompt=3_000_000, cached=300_000, written=3_750_000, written_long=6_000_000, answer=15_000_000
)


def test_a_cost_is_the_sum_of_its_parts() -> None:
    cost = Cost(prompt=100, cached=40, written=30, written_long=10, answer=7, thought=3)
    # 30 new at 3, 40 read at 0.3, 20 written at 3.75, 10 for an hour at 6, 7 answered at 15 micro-dollars.
    assert PRICE.of(cost) == (90 + 12 + 75 + 60 + 105) * 1_000_000


def test_rows_are_kept_by_key_and_model() -> None:
    bill = Bill({Priced("m"): PRICE})
    bill.book("k2", "m", Cost(10, answer=1))
    bill.book("k1", "m", Cost(10, answer=2), whole=False)
    bill.book("k1", "m", Cost(10, cached=10, answer=0))
    told = bill.told()
    assert [(row["key"], row["requests"], row["cut"], row["answer_tokens"]) for row in told["rows"]] == [
        ("k1", 2, 1, 2),
        ("k2", 1, 0, 1),
    ]  # fmt: skip
    assert told["micro_dollars"] == 60 + 3 + 45
    bill.clear()
    assert bill.told() == {"rows": [], "pico_dollars": 0, "micro_dollars": 0}


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 999), st.integers(0, 999)), max_size=20
    )
)
def test_the_total_is_the_sum_of_the_rows(uses: list[tuple[str, int, int]]) -> None:
    bill = Bill({})
    for key, prompt, answer in uses:
        bill.book(key, "m", Cost(prompt, answer=answer))
    told = bill.told()
    assert told["pico_dollars"] == sum(row["pico_dollars"] for row in told["rows"])
    price = Price()
    assert told["pico_dollars"] == sum(p * price.prompt + a * price.answer for _, p, a in uses)


def test_a_price_is_read() -> None:
    price = Price(1, 2, 3, 4, 5)
    assert parse_price("m-1=1,2,3,4,5") == (Priced("m-1"), price)
    assert parse_price("m-1@flex>200=1,2,3,4,5") == (Priced("m-1", "flex", 200), price)
    assert parse_price("m>0=1,2,3,4,5") == (Priced("m", "", 0), price)


def test_a_tier_goes_before_a_length_and_the_longest_that_is_passed_counts() -> None:
    specs = ["m=1,0,0,0,0", "m>100=2,0,0,0,0", "m>200=3,0,0,0,0", "m@flex=4,0,0,0,0"]
    bill = Bill(dict(map(parse_price, specs)))
    asked = [("", 100), ("", 101), ("", 900), ("flex", 900), ("priority", 101)]
    assert [bill.price("m", *one).prompt for one in asked] == [1, 2, 3, 4, 2]
    assert bill.price("n", "", 1) == Price()


@pytest.mark.parametrize(
    "spec",
    ["", "m", "m=", "m=1,2,3,4", "m=1,2,3,4,-5", "=1,2,3,4,5", "m@=1,2,3,4,5", "m>x=1,2,3,4,5"],
)
def test_a_wrong_price_is_refused(spec: str) -> None:
    with pytest.raises(ValueError, match="give MODEL=PROMPT,CACHED,WRITTEN,WRITTEN_LONG,ANSWER"):
        parse_price(spec)
