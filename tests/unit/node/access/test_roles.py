"""Roles: what the built-in ones may, what own ones may, and which keys their holders may make."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.access.roles import BUILT_IN_ROLES, Roles
from smg_node.core.access.permissions import (
    ACCESS,
    BUILT_IN,
    PERMISSIONS,
    TENANTS,
    is_role_name,
    may_any,
)


def test_each_permission_is_of_one_group_of_routes() -> None:
    assert len(set(PERMISSIONS)) == len(PERMISSIONS)
    assert set(ACCESS) == {"public", *PERMISSIONS}


def test_an_administrator_may_all_and_an_unknown_role_nothing() -> None:
    assert BUILT_IN_ROLES.of("admin") == frozenset(PERMISSIONS)
    assert BUILT_IN_ROLES.of("auditor") == frozenset()
    assert "look" in BUILT_IN_ROLES.of("operator")
    assert not BUILT_IN_ROLES.of("tenant_admin") - TENANTS


def test_own_roles_have_their_permissions_and_no_others() -> None:
    roles = Roles({"reader": ["history", "models", "nothing-known"]})
    assert roles.of("reader") == {"history", "models"}
    assert roles.names == (*BUILT_IN, "reader")


def test_a_built_in_role_cannot_be_defined_again() -> None:
    with pytest.raises(AssertionError, match="built-in"):
        Roles({"user": ["keys"]})


def test_who_makes_keys_gives_no_more_than_it_has() -> None:
    own = Roles({"reader": ["history"], "desk": ["keys", "history"], "boss": ["keys.own", "look"]})
    assert own.given_by("admin", beyond_tenant=True) == own.names
    assert own.given_by("tenant_admin", beyond_tenant=False) == ("user", "tenant_admin", "reader")
    assert own.given_by("desk", beyond_tenant=True) == ("reader", "desk")
    # What reaches beyond its tenant is not its tenant's to give, even if it has it itself.
    assert own.given_by("boss", beyond_tenant=False) == ()
    assert own.given_by("unknown", beyond_tenant=True) == ()


def test_a_role_without_anything_beyond_its_tenant_needs_one() -> None:
    roles = Roles({"reader": ["history"], "watcher": ["look"]})
    assert [name for name in roles.names if roles.needs_tenant(name)] == [
        "user",
        "tenant_admin",
        "reader",
    ]


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c"]), st.sets(st.sampled_from(PERMISSIONS), min_size=1)
    )
)
def test_no_chain_of_makers_grows(own: dict[str, set[str]]) -> None:
    roles = Roles(own)
    for first in roles.names:
        reached = {first}
        while (
            more := {
                role
                for maker in reached
                for beyond in (True, False)
                for role in roles.given_by(maker, beyond_tenant=beyond)
            }
            - reached
        ):
            reached |= more
        assert all(roles.is_within(role, first) for role in reached)


@pytest.mark.parametrize("name", ["a", "chat-only", "a.b_c-9", "x" * 32])
def test_names_of_roles(name: str) -> None:
    assert is_role_name(name)


@pytest.mark.parametrize("name", ["", "9a", "A", "a b", "a!", "x" * 33, "a\n", "ä"])
def test_no_names_of_roles(name: str) -> None:
    assert not is_role_name(name)


def test_one_of_several_permissions_is_enough() -> None:
    assert may_any(frozenset({"keys.own"}), "keys", "keys.own")
    assert not may_any(frozenset({"look"}), "keys", None)
