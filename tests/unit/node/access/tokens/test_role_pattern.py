"""Patterns of roles match as a slow and simple matcher does, in time that grows with the text alone."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.access.tokens.role_pattern import RolePattern


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("admin", "admin", True),
        ("admin", "admins", False),
        ("admin", "", False),
        ("system:serviceaccount:prod:*", "system:serviceaccount:prod:web", True),
        ("system:serviceaccount:prod:*", "system:serviceaccount:dev:web", False),
        ("system:serviceaccount:*:web", "system:serviceaccount:a:b:web", True),
        ("*-admin", "gateway-admin", True),
        ("*-admin", "gateway-admins", False),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("ab*ba", "aba", False),
        ("a*b*c", "abbc", True),
        ("a**c", "ac", True),
        ("a.c", "abc", False),
        ("*", "", True),
    ],
)
def test_stars_stand_for_any_characters(pattern: str, name: str, *, matches: bool) -> None:
    assert RolePattern(pattern).matches(name) is matches


@given(st.text("ab*", max_size=8), st.text("ab", max_size=10))
def test_it_matches_as_a_regular_expression_would(pattern: str, name: str) -> None:
    wanted = re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL)
    assert RolePattern(pattern).matches(name) is (wanted is not None)


def test_many_stars_take_no_time() -> None:
    pattern, name = RolePattern("*a" * 40 + "b"), "a" * 12_000
    began_s = time.monotonic()
    assert not pattern.matches(name)
    assert time.monotonic() - began_s < 5
