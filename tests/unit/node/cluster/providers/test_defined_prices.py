"""Prices count as the cluster defines them, else as a node's own file does; what cannot be read is told."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from smg_node.cluster.providers.definitions import effective, read_own
from smg_node.core.errors import SmgError
from smg_node.core.prices.price_list import PriceBook


@dataclass
class Held:
    key: str
    value: Any
    version: int = 7
    owner: str = "b"
    time_ms: int = 9


OWN = read_own(json.dumps({"prices": {"m": {"prompt": 1}, "a/x": {"prompt": 2}}}))


def closed(_sealed: bytes) -> str | None:
    return None


def test_the_clusters_price_goes_before_a_nodes_own() -> None:
    held = [Held("price/a/x", {"spec": {"prompt": 9}}), Held("price/n", {"spec": {"answer": 1}})]
    now = effective(OWN, held, closed)
    assert list(now.prices) == ["a/x", "m", "n"]
    assert now.prices["a/x"].plain == {"prompt": 9}
    assert (now.prices["a/x"].source, now.prices["m"].source) == ("cluster", "node")
    book = PriceBook()
    book.set("definitions", {name: one.price for name, one in now.prices.items()})
    price = book.now.of("m", "a", "x")
    assert price is not None
    assert price.periods[0].steps[0].rates.prompt == 9_000_000


@pytest.mark.parametrize(
    "value", [7, {}, {"spec": {"prompt": -1}}, {"spec": {"of_a_later_release": 1}}]
)
def test_a_price_that_cannot_be_read_is_left_where_it_is_and_told(value: Any) -> None:
    now = effective(OWN, [Held("price/n", value)], closed)
    assert list(now.unreadable) == ["price/n"]
    assert list(now.prices) == ["a/x", "m"]


def test_a_mistake_in_a_nodes_own_file_is_named() -> None:
    with pytest.raises(SmgError, match=r"prices\.m: promt: there is no parameter"):
        read_own(json.dumps({"prices": {"m": {"promt": 1}}}))
