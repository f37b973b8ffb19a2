"""Role definitions: those of the cluster count in place of a node's own, and what is not understood is no role."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.shared import AccessDefinition
from smg_node.cluster.issuers.role_definitions import merged_roles, read_role
from smg_node.core.access.permissions import BUILT_IN, PERMISSIONS

OWN = {"fleet": ("look", "workers"), "billing": ("look", "prices")}


def defined(name: str, value: Any) -> AccessDefinition:
    return AccessDefinition(name, value, 7, "b", 1)


def test_without_definitions_roles_are_those_of_the_settings() -> None:
    roles, unreadable = merged_roles(OWN, [])
    assert roles.names == (*BUILT_IN, "fleet", "billing")
    assert sorted(roles.of("fleet")) == ["look", "workers"]
    assert unreadable == {}


def test_a_definition_counts_in_place_of_the_role_of_the_settings() -> None:
    shared = [
        defined("fleet", {"permissions": ["look"]}),
        defined("on-call", {"permissions": ["members"]}),
    ]
    roles, unreadable = merged_roles(OWN, shared)
    found = [sorted(roles.of(name)) for name in ("fleet", "on-call", "billing")]
    assert found == [["look"], ["members"], ["look", "prices"]]
    assert unreadable == {}


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        "look",
        {"permissions": []},
        {"permissions": "look"},
        {"permissions": ["look", "flying"]},
        {"permissions": ["look", 7]},
        {"permissions": ["look"], "networks": ["10.0.0.0/8"]},
    ],
)
def test_a_definition_that_is_not_understood_whole_is_no_role_here(value: Any) -> None:
    roles, unreadable = merged_roles(OWN, [defined("fleet", value)])
    assert "fleet" not in roles.names
    assert roles.of("fleet") == frozenset()
    assert list(unreadable) == ["fleet"]
    assert roles.of("billing") == {"look", "prices"}


@pytest.mark.parametrize("name", ["admin", "user", "Fleet", "", "a b", "x" * 33])
def test_no_definition_has_the_name_of_a_built_in_role_or_none(name: str) -> None:
    roles, unreadable = merged_roles({}, [defined(name, {"permissions": list(PERMISSIONS)})])
    assert roles.names == tuple(BUILT_IN)
    assert {one: roles.of(one) for one in BUILT_IN} == dict(BUILT_IN)
    assert list(unreadable) == [name]


@given(st.lists(st.sampled_from(PERMISSIONS), min_size=1))
def test_permissions_are_kept_once_and_in_their_usual_order(given: list[str]) -> None:
    read = read_role("fleet", {"permissions": given})
    assert read == tuple(one for one in PERMISSIONS if one in given)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3)
        ),
    )
)
def test_whatever_is_defined_nothing_breaks_and_the_built_in_roles_stay(value: Any) -> None:
    roles, _ = merged_roles(OWN, [defined("fleet", value)])
    assert {one: roles.of(one) for one in BUILT_IN} == dict(BUILT_IN)
    assert roles.of("billing") == {"look", "prices"}
