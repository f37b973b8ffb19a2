"""Costs of patterns: repeats are multiplied out, whatever stands in them."""

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import SchemaError, SchemaValidator, core_schema

from smg_node.mcp.search.pattern_cost import COMPILING, MATCHING, cost, is_small


@pytest.mark.parametrize(
    ("pattern", "compiling", "matching"),
    [
        ("", 0, 0),
        ("ab", 6, 2),
        ("a{3}", 9, 3),
        ("(ab){2,4}c", 27, 9),
        ("a{2,}", 9, 3),
        ("a{,3}", 9, 3),
        ("a{0}", 3, 1),
        (r"\w+\.", 403, 9),
        (r"\p{Greek}{3}", 1_200, 24),
        (r"\pL{2}", 800, 16),
        (r"\x{41}{2}", 6, 2),
        ("[^]a]", 12, 4),
        ("[]a]{2}", 24, 8),
        (r"[\]]", 400, 8),
        ("[a[bc]d]{2}", 800, 16),
        ("(a|b)*", 9, 3),
        ("a*{2}{3}?", 18, 6),
        ("((a{2}){2}){2}", 24, 8),
        ("{3}", 0, 0),
        (")", 3, 1),
        ("[a", 12, 4),
        ("a{b}", 12, 4),
        ("\\", 3, 1),
    ],
)
def test_repeats_are_multiplied_out(pattern: str, compiling: int, matching: int) -> None:
    assert (cost(pattern, COMPILING), cost(pattern, MATCHING)) == (compiling, matching)


@pytest.mark.parametrize("pattern", ["x{999999}", "(" * 60, "((x{99}){99}){99}"])
def test_what_is_above_the_most_is_one_more(pattern: str) -> None:
    assert cost(pattern, COMPILING) == COMPILING.most + 1
    assert cost(pattern, MATCHING) == MATCHING.most + 1


@pytest.mark.parametrize(
    "pattern",
    [
        "weather",
        "get_.*_data",
        "(?i)database.*query|query.*database",
        r"^(create|update)_\w+$",
        r"\b\w+_\d{1,3}\b",
        r"[\w.-]+@[\w.-]+",
        "x" * 256,
    ],
)
def test_patterns_that_somebody_means_are_small(pattern: str) -> None:
    assert is_small(pattern)


_REPEATS = ["*", "+", "?", "{2}", "{9}", "{50}", "{1,9}", "{3,}", "{,5}", "*{20}"]
_ATOMS = [r"\w", r"\p{L}", r"\pN", r"[\w-]", "[a-z]", "[[:word:]]", ".", "a", "é", r"\b", r"\x{41}"]
_PIECES = st.sampled_from([*_ATOMS, *_REPEATS, "(", ")", "(?:", "|"])


@given(st.lists(_PIECES, max_size=30).map("".join))
def test_what_is_small_compiles_and_matches_soon(pattern: str) -> None:
    if not is_small(pattern):
        return
    schema = core_schema.str_schema(pattern=f"(?i){pattern}", regex_engine="rust-regex")
    began_s = time.process_time()
    with suppress(SchemaError):
        SchemaValidator(schema).isinstance_python("aé 1_" * 1_600)
    # Without the limits it may be thirty times as much.
    assert time.process_time() - began_s < 1
