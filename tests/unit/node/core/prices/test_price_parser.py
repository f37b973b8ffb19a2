"""A price is read with everything that is wrong in it."""

from datetime import date
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.prices.price import Rates, Step, day_number, tier_name
from smg_node.core.prices.price_parser import parse_price


def test_what_is_unsaid_is_as_the_prompt() -> None:
    (period,) = parse_price({"prompt": 2, "answer": 8}).periods
    million = 1_000_000
    rates = Rates(2 * million, 2 * million, 2 * million, 2 * million, 8 * million)
    assert period.steps == (Step(-1, rates),)
    assert parse_price({}).periods[0].steps == (Step(-1, Rates()),)


def test_a_step_of_the_usual_tier_does_not_undo_what_a_tier_says() -> None:
    said = {"prompt": 4, "answer": 20, "steps": [{"above": 100, "prompt": 8, "answer": 30}]}
    (period,) = parse_price({**said, "tiers": {"flex": {"prompt": 2}}}).periods
    flex = period.tiers["flex"]
    assert [step.above for step in flex] == [-1, 100]
    assert [step.rates.prompt for step in flex] == [2_000_000, 2_000_000]
    assert [step.rates.answer for step in flex] == [20_000_000, 30_000_000]


def test_a_day_may_be_a_date_of_yaml() -> None:
    price = parse_price({"from": date(2026, 8, 21), "prompt": 1})
    assert price.periods[0].first_day == day_number(date(2026, 8, 21)) == 20_686


@pytest.mark.parametrize(
    ("said", "where", "words"),
    [
        ([], "price", "a price is an object"),
        ({"prompt": -1}, "prompt", "between 0"),
        ({"prompt": "3"}, "prompt", "a number"),
        ({"promt": 3}, "promt", "did you mean 'prompt'"),
        ({"prompt": float("nan")}, "prompt", "between 0"),
        ({"steps": [{"prompt": 3}]}, "steps[0].above", "required"),
        ({"steps": [{"above": 1}, {"above": 1}]}, "steps[1].above", "another step"),
        ({"steps": [{"above": 1, "tiers": {}}]}, "steps[0].tiers", "no parameter"),
        ({"tiers": {"Flex": {}}}, "tiers", "small letters"),
        ({"tiers": {"flex": {"from": "2026-01-01"}}}, "tiers.flex.from", "no parameter"),
        ({"from": "tomorrow"}, "from", "as 2026-08-21"),
        ({"periods": []}, "periods", "at least 1"),
        ({"periods": [{}], "prompt": 1}, "prompt", "no parameter"),
        ({"periods": [{"from": "2026-02-01"}, {}]}, "periods[1]", "after the one before"),
        ({"server_tools": {"web_search": "1"}}, "server_tools.web_search", "a number"),
    ],
)
def test_what_is_wrong_is_named(said: Any, where: str, words: str) -> None:
    with pytest.raises(SmgError) as caught:
        parse_price(said)
    assert caught.value.where == where
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("said", "name"),
    [("", ""), ("Default", ""), ("ON_DEMAND", ""), ("batches", "batch"), (" Flex ", "flex")],
)
def test_tiers_have_one_name(said: str, name: str) -> None:
    assert tier_name(said) == name
