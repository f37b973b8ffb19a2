"""Rights over keys, as values: whose keys a caller has, and what it may give."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.access.identity import LOCAL, Identity
from smg_node.access.key_rights import KeyRights
from smg_node.access.limit_rights import LimitRights
from smg_node.access.restrictions import Restrictions
from smg_node.access.roles import BUILT_IN_ROLES, Roles
from smg_node.core.access.permissions import PERMISSIONS, Permission
from smg_node.core.errors import SmgError

ROLES = Roles({"gate": ["access", "look"], "desk": ["keys", "look"]})
A = KeyRights(Identity("k", "a", "tenant_admin"), ROLES)
DESK = KeyRights(Identity("d", "", "desk"), ROLES)


def refused(error: pytest.ExceptionInfo[SmgError]) -> tuple[int, str]:
    return error.value.status, error.value.code


def test_this_machine_s_operator_has_all_keys_and_gives_every_role() -> None:
    rights = KeyRights(LOCAL, ROLES)
    assert rights.everywhere
    assert rights.sees("a")
    assert rights.given == ROLES.names
    assert rights.tenant_of(None) is None
    rights.check_restrictions(None)
    rights.check_revoked("admin")
    rights.check_mapped(ROLES.names)


def test_a_tenant_s_administrator_has_those_of_its_tenant() -> None:
    assert not A.everywhere
    assert (A.sees("a"), A.sees("b"), A.sees("")) == (True, False, False)
    assert A.given == ("user", "tenant_admin")
    assert (A.tenant_of(None), A.tenant_of("a")) == ("a", "a")
    with pytest.raises(SmgError) as other:
        A.tenant_of("b")
    assert refused(other) == (403, "other_tenant")


def test_who_says_what_tokens_are_worth_gives_no_more_than_it_may_itself() -> None:
    gate = KeyRights(Identity("g", "", "gate"), ROLES)
    gate.check_mapped(["gate", "unknown-here"])
    for role in ("admin", "operator", "user", "desk"):
        with pytest.raises(SmgError) as more:
            gate.check_mapped(["gate", role])
        assert refused(more) == (403, "role_may_more")


def test_who_is_restricted_says_nothing_of_what_tokens_are_worth_and_opens_no_cluster() -> None:
    KeyRights(Identity("k", "", "admin"), ROLES).check_opened()
    only = Restrictions(networks=("10.0.0.0/8",))
    bound = KeyRights(Identity("k", "", "admin", restrictions=only), ROLES)
    with pytest.raises(SmgError) as mapped:
        bound.check_mapped(["user"])
    assert refused(mapped) == (403, "key_may_more")
    for less in (bound, DESK):
        with pytest.raises(SmgError) as opened:
            less.check_opened()
        assert refused(opened) == (403, "key_may_more")


def test_a_key_that_is_unknown_here_may_be_revoked_and_one_above_may_not() -> None:
    DESK.check_revoked("left-over")
    with pytest.raises(SmgError) as above:
        DESK.check_revoked("gate")
    assert refused(above) == (403, "key_may_more")


def test_restrictions_of_a_maker_bind_what_it_makes() -> None:
    only = Restrictions(networks=("10.0.0.0/8",))
    bound = KeyRights(Identity("k", "a", "tenant_admin", restrictions=only), ROLES)
    bound.check_restrictions(Restrictions(networks=("10.1.0.0/16",), models=("m",)))
    for wider in (None, Restrictions(models=("m",)), Restrictions(networks=("0.0.0.0/0",))):
        with pytest.raises(SmgError) as more:
            bound.check_restrictions(wider)
        assert refused(more) == (403, "key_may_more")


def test_limits_are_a_tenant_s_by_its_name_or_by_a_key_of_its_own() -> None:
    rights = LimitRights(
        A.identity, BUILT_IN_ROLES.of("tenant_admin"), {"mine": "a", "theirs": "b"}.get
    )
    assert rights.owns({"tenant": "a", "model": "m"})
    assert rights.owns({"key": "mine"})
    for names in (
        {},
        {"tenant": "b"},
        {"tenant": "*"},
        {"tenant": "b", "key": "mine"},
        {"key": "theirs"},
        {"key": "*"},
        {"key": "nobody"},
        {"model": "m"},
        {"provider": "p"},
    ):
        assert not rights.owns(names), names
        with pytest.raises(SmgError) as unseen:
            rights.check_seen(names, "x")
        assert refused(unseen) == (404, "limit_not_found")
    with pytest.raises(SmgError) as each:
        rights.check_set({"tenant": "a", "model": "*"})
    assert refused(each) == (403, "other_tenant")


@given(
    st.sets(st.sampled_from(PERMISSIONS)),
    st.sets(st.sampled_from(PERMISSIONS)),
    st.sampled_from(["user", "operator", "admin", "own", "nobody"]),
)
def test_whoever_defines_a_role_has_all_of_it(
    held: set[Permission], asked: set[Permission], role: str
) -> None:
    roles = Roles({"own": held or {"look"}})
    rights = KeyRights(Identity("k", "", role), roles)
    if asked <= roles.of(role):
        rights.check_permissions(asked)
        return
    with pytest.raises(SmgError) as more:
        rights.check_permissions(asked)
    assert refused(more) == (403, "role_may_more")
