"""Prices are found under a provider's model before a public name, and definitions go before settings."""

from smg_node.core.prices.price_list import DEFINITIONS, SETTINGS, PriceBook, PriceList
from smg_node.core.prices.price_parser import parse_price

ONE, TWO, THREE = (parse_price({"prompt": amount}) for amount in (1, 2, 3))


def test_a_target_has_its_own_price_or_that_of_the_public_name() -> None:
    prices = PriceList({"m": ONE, "a/theirs": TWO, "x/y": THREE})
    assert prices.of("m") is ONE
    assert prices.of("m", "a", "theirs") is TWO
    assert prices.of("m", "b", "theirs") is ONE
    assert prices.of("other", "b", "theirs") is None
    # A public name with a slash is one as well.
    assert prices.of("x/y") is THREE


def test_definitions_go_before_settings_and_listeners_hear_of_changes_only() -> None:
    book = PriceBook()
    heard: list[PriceList] = []
    book.watch(heard.append)
    book.set(DEFINITIONS, {"m": TWO})
    book.set(SETTINGS, {"m": ONE, "n": ONE})
    assert (book.now.of("m"), book.now.of("n")) == (TWO, ONE)
    book.set(SETTINGS, {"m": ONE, "n": ONE})
    book.set(DEFINITIONS, {})
    assert book.now.of("m") is ONE
    assert [len(prices) for prices in heard] == [0, 1, 2, 2]
    assert heard[-1] is book.now
