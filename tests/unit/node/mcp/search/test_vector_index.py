"""Vectors of tools: the nearest ones, whatever numbers a model gives."""

from array import array
from math import inf, isclose, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.cooperative_steps import whole
from smg_node.core.generation.tool_serving import ListedTool
from smg_node.mcp.search.searched_tool import SearchedTool
from smg_node.mcp.search.vector_index import nearest_tools, unit_vector

TOOLS = tuple(SearchedTool(name, ListedTool(name)) for name in ("a", "b", "c"))
numbers = st.floats(-(2.0**40), 2.0**40, width=32)


def unit(*values: float) -> "array[float]":
    found = unit_vector(array("f", values))
    assert found is not None
    return found


def nearest(question: "array[float]", *vectors: "array[float] | None", limit: int = 5) -> str:
    found = whole(nearest_tools(question, TOOLS[: len(vectors)], vectors, limit))
    return "".join(one.called for one in found)


@pytest.mark.parametrize("values", [(), (0, 0), (nan, 1), (inf, 1), (-inf, inf)])
def test_what_has_no_direction_is_no_vector(values: tuple[float, ...]) -> None:
    assert unit_vector(array("f", values)) is None


@given(st.lists(numbers, min_size=1, max_size=8))
def test_a_unit_vector_has_length_one(values: list[float]) -> None:
    found = unit_vector(array("f", values))
    assert found is None or isclose(sum(x * x for x in found), 1, rel_tol=1e-4)


def test_the_nearest_comes_first_whatever_the_lengths_were() -> None:
    assert nearest(unit(1, 0), unit(1, 1), unit(900, 1), unit(-1, 0)) == "bac"
    assert nearest(unit(1, 0), unit(1, 1), unit(900, 1), unit(-1, 0), limit=1) == "b"


def test_equal_ones_come_in_their_order_and_what_has_no_vector_does_not() -> None:
    assert nearest(unit(1, 0), unit(2, 0), unit(3, 0)) == "ab"
    assert nearest(unit(1, 0), None, unit(1, 0, 0), unit(0, 1)) == "c"
    assert nearest(unit(1, 0)) == ""
