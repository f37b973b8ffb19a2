"""Taking keys over: new ones, those that are there, and those that are refused."""

import hashlib

import pytest

from smg_node.access.identity import KeyAuthenticator
from smg_node.cluster.foreign_keys import plan_take_over, record_of
from smg_node.core.errors import SmgError
from smg_node.http.ports.keys import ForeignKey
from support.state.fake_namespace import EPOCH_MS
from unit.node.cluster.test_api_keys import USER, Nodes


def wish(
    number: int, tenant: str = "acme", name: str = "", expires_ms: int | None = None
) -> ForeignKey:
    digest = hashlib.sha256(f"sk-foreign-key-{number}".encode()).digest()
    return ForeignKey(digest, tenant, "user", name, expires_ms)


def test_keys_taken_over_on_one_node_open_the_other_and_twice_is_once() -> None:
    nodes = Nodes()
    done = nodes.a.take_over([wish(1), wish(2, name="x")], dry_run=False)
    assert (len(done.created), done.unchanged, done.refused) == (2, 0, [])
    assert [view.foreign for view in done.created] == [True, True]
    who = KeyAuthenticator(nodes.b).identify("sk-foreign-key-2")
    assert (who.key_id, who.tenant) == (done.created[1].id, "acme")
    writes = nodes.world.keys["a"].writes + nodes.world.keys["b"].writes
    nodes.now_ms += 1_000
    again = nodes.b.take_over([wish(2, name="x"), wish(1)], dry_run=False)
    assert (len(again.created), again.unchanged, len(again.refused)) == (0, 2, 0)
    assert nodes.world.keys["a"].writes + nodes.world.keys["b"].writes == writes


def test_a_dry_run_says_the_same_and_writes_nothing() -> None:
    nodes = Nodes()
    done = nodes.a.take_over([wish(1)], dry_run=True)
    assert len(done.created) == 1
    assert nodes.world.keys["a"].writes == 0
    assert not nodes.a.foreign


def test_what_is_revoked_stays_so_and_what_differs_stays_as_it_is() -> None:
    nodes = Nodes()
    one, two = nodes.a.take_over([wish(1), wish(2)], dry_run=False).created
    nodes.b.revoke(one.id, force=False)
    done = nodes.a.take_over([wish(1), wish(2, "other"), wish(3, expires_ms=1)], dry_run=False)
    assert [(no.index, no.code) for no in done.refused] == [
        (0, "key_revoked"),
        (1, "key_differs"),
        (2, "key_expired"),
    ]
    assert done.refused[0].id == one.id
    assert "another tenant" in done.refused[1].message
    assert nodes.b.get(two.id) == record_of(wish(2), EPOCH_MS)
    with pytest.raises(SmgError):
        KeyAuthenticator(nodes.b).identify("sk-foreign-key-1")
    assert nodes.b.foreign


def test_of_one_key_twice_the_first_counts() -> None:
    plan = plan_take_over([wish(1), wish(1), wish(1, "b")], lambda _: None, now_ms=EPOCH_MS)
    assert (len(plan.new), plan.unchanged, [no.index for no in plan.refused]) == (1, 1, [2])


def test_a_foreign_admin_key_closes_the_cluster() -> None:
    nodes = Nodes()
    nodes.a.create(USER)
    root = ForeignKey(hashlib.sha256(b"k" * 40).digest(), "", "admin")
    assert nodes.a.take_over([root], dry_run=True).closes
    assert not nodes.a.closed
    assert nodes.a.take_over([root], dry_run=False).closes
    assert nodes.b.closed
    assert KeyAuthenticator(nodes.b).identify("k" * 40).role == "admin"


def test_without_room_for_all_none_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smg_mesh.state.api_keys.KEYS_MAX", 2)
    nodes = Nodes()
    with pytest.raises(SmgError) as caught:
        nodes.a.take_over([wish(1), wish(2), wish(3)], dry_run=False)
    assert caught.value.code == "state_full"
    assert "2 more fit, and not 3" in caught.value.message
    assert len(nodes.a) == 0
