"""Restrictions: models, networks, APIs and urgency, and when one set of them is within another."""

import ipaddress
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.access.restrictions import (
    APIS,
    Restrictions,
    allows_api,
    allows_model,
    allows_peer,
    allows_priority,
    is_within,
    read_network,
    restrictions_of,
)
from smg_node.core.request_context import PRIORITIES

PATTERNS = st.text("ab*/", min_size=1, max_size=8)
NAMES = st.text("ab/", max_size=10)


@pytest.mark.parametrize(
    ("pattern", "name", "allowed"),
    [
        ("llama", "llama", True),
        ("llama", "llama2", False),
        ("llama-*", "llama-3", True),
        ("llama-*", "llama-", True),
        ("llama-*", "my-llama-3", False),
        ("*", "", True),
        ("*/small", "org/deep/small", True),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("a*b*a", "aba", True),
        ("a*b*b", "ab", False),
        ("a.c", "abc", False),
        ("[ab]", "a", False),
    ],
)
def test_a_star_stands_for_any_characters_and_nothing_else_is_special(
    pattern: str, name: str, allowed: bool
) -> None:
    assert allows_model(Restrictions(models=(pattern,)), name) is allowed


@given(PATTERNS, NAMES)
def test_patterns_match_as_an_expression_would(pattern: str, name: str) -> None:
    expression = ".*".join(re.escape(part) for part in pattern.split("*"))
    expected = re.fullmatch(expression, name, re.DOTALL) is not None
    assert allows_model(Restrictions(models=(pattern,)), name) is expected


def test_a_pattern_of_many_stars_is_tried_in_no_time() -> None:
    began = time.process_time()
    assert not allows_model(Restrictions(models=("*a" * 60 + "b",)), "a" * 100_000 + "c")
    # Of an expression with 60 stars the end would not be seen.
    assert time.process_time() - began < 60


@pytest.mark.parametrize(
    ("network", "peer", "allowed"),
    [
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.0.0.1", False),
        ("10.0.0.0/8", "::ffff:10.1.2.3", True),
        ("2001:db8::/32", "2001:db8::1", True),
        ("fe80::/10", "fe80::1%eth0", True),
        ("0.0.0.0/0", "::1", False),
        ("127.0.0.1/32", "", False),
        ("127.0.0.1/32", "nonsense", False),
        ("no network", "10.0.0.1", False),
    ],
)
def test_a_peer_is_in_a_network_or_not_and_a_socket_file_in_none(
    network: str, peer: str, allowed: bool
) -> None:
    assert allows_peer(Restrictions(networks=(network,)), peer) is allowed


def test_what_is_not_said_is_not_restricted() -> None:
    free = Restrictions()
    assert allows_model(free, "anything")
    assert allows_peer(free, "")
    assert allows_api(free, "admin")
    assert allows_priority(free, "system")


def test_apis_and_classes() -> None:
    only = Restrictions(routes=("chat",), max_priority="default")
    assert allows_api(only, "chat")
    assert not allows_api(only, "messages")
    assert not allows_api(only, "admin")
    assert allows_api(only, "")
    assert [one for one in PRIORITIES if allows_priority(only, one)] == ["default", "bulk"]


def test_a_record_without_restrictions_has_none_and_an_unknown_class_is_the_least() -> None:
    assert restrictions_of((), (), (), "") is None
    made = restrictions_of((), (), (), "urgent")
    assert made is not None
    assert made.max_priority == "bulk"


@pytest.mark.parametrize("text", ["10.0.0.1/8", "x", "", "10.0.0.0/33", "1/2/3"])
def test_what_is_no_network(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_network(text)


NETWORKS = ("10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32", "2001:db8::/32", "::/0", "0.0.0.0/0")
SETS = st.builds(
    Restrictions,
    models=st.lists(PATTERNS, max_size=2).map(tuple),
    networks=st.lists(st.sampled_from(NETWORKS), max_size=2).map(tuple),
    routes=st.lists(st.sampled_from(APIS), max_size=2, unique=True).map(tuple),
    max_priority=st.sampled_from([None, *PRIORITIES]),
)
PEERS = st.sampled_from(["10.1.2.3", "10.9.9.9", "192.0.2.1", "2001:db8::7", "2001:db9::7", ""])


@given(SETS, SETS, NAMES, PEERS, st.sampled_from(APIS), st.sampled_from(PRIORITIES))
def test_what_is_within_another_allows_nothing_that_the_other_does_not(
    narrow: Restrictions, wide: Restrictions, name: str, peer: str, api: str, claimed: str
) -> None:
    assert is_within(narrow, None)
    assert is_within(narrow, narrow)
    if not is_within(narrow, wide):
        return
    urgent = next(one for one in PRIORITIES if one == claimed)
    assert not allows_model(narrow, name) or allows_model(wide, name)
    assert not allows_peer(narrow, peer) or allows_peer(wide, peer)
    assert not allows_api(narrow, api) or allows_api(wide, api)
    assert not allows_priority(narrow, urgent) or allows_priority(wide, urgent)


def test_nothing_that_is_unrestricted_is_within_restrictions() -> None:
    wide = Restrictions(networks=("10.0.0.0/8",))
    assert not is_within(None, wide)
    assert not is_within(Restrictions(models=("a",)), wide)
    assert is_within(Restrictions(networks=(str(ipaddress.ip_network("10.2.0.0/16")),)), wide)
