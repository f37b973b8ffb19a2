"""API keys: good on all nodes, worthless everywhere once revoked, and never open by accident."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.crdt.namespace import StateError
from smg_mesh.state.api_keys import KEYS_MAX, REVOKED_KEEP_MS, Keys
from smg_mesh.state.key_record import FOREIGN, KeyRecord, Role, encode_key
from support.state.fake_namespace import EPOCH_MS, Cell, FakeNamespaces

DIGEST = bytes(range(32))
NOW = EPOCH_MS


def record(
    key_id: str, role: Role = "user", *, tenant: str = "acme", expires: int = 0, **only: Any
) -> KeyRecord:
    return KeyRecord(
        key_id,
        tenant,
        role,
        name="a name",
        digest=DIGEST,
        created_ms=NOW,
        expires_ms=expires,
        **only,
    )


class Views:
    """The keys as each of three nodes sees them."""

    def __init__(self) -> None:
        self.world = FakeNamespaces("a", "b", "c", name="keys")
        self.on = {name: Keys(self.world[name]) for name in "abc"}

    def __getitem__(self, name: str) -> Keys:
        return self.on[name]


@pytest.fixture
def views() -> Views:
    return Views()


def test_a_key_made_on_one_node_is_known_on_all(views: Views) -> None:
    made = record("k1", "operator", expires=NOW + 5_000)
    views["a"].add(made, wall_ms=NOW)
    assert views["b"].get("k1") == views["c"].get("k1") == made
    assert views["c"].records() == [made]
    assert (len(views["b"]), views["b"].closed) == (1, False)
    assert (made.active(NOW + 4_999), made.active(NOW + 5_000)) == (True, False)


def test_a_revoked_key_keeps_its_name_and_loses_what_it_is_recognised_by(views: Views) -> None:
    views["a"].add(record("k1"), wall_ms=NOW)
    views["b"].revoke("k1", wall_ms=NOW + 7)
    gone = views["a"].get("k1")
    assert gone is not None
    assert (gone.digest, gone.revoked_ms, gone.tenant, gone.name) == (
        b"",
        NOW + 7,
        "acme",
        "a name",
    )
    assert not gone.active(NOW + 8)
    writes = views.world["c"].writes
    assert views["c"].revoke("k1", wall_ms=NOW + 99) == gone
    assert views.world["c"].writes == writes


def test_revoking_what_is_not_there_writes_nothing(views: Views) -> None:
    with pytest.raises(LookupError):
        views["a"].revoke("k1", wall_ms=NOW)
    assert views.world["a"].writes == 0


def test_a_revocation_beats_the_making_whatever_comes_first(views: Views) -> None:
    # The maker's clock is ahead of the other's.
    views.world["a"].skew_ms = 30_000
    views["a"].add(record("k1"), wall_ms=NOW + 30_000)
    views.world.cut(["a"], ["b", "c"])
    views["b"].revoke("k1", wall_ms=NOW)
    assert views["a"].get("k1") == record("k1")
    views.world.heal()
    for name in "abc":
        found = views[name].get("k1")
        assert found is not None
        assert found.revoked_ms == NOW


def test_a_node_that_was_away_brings_no_revoked_key_back(views: Views) -> None:
    views["a"].add(record("k1"), wall_ms=NOW)
    views.world.cut(["a", "b"], ["c"])
    views["a"].revoke("k1", wall_ms=NOW + 1)
    views.world.restart("c")
    views.world.heal()
    again = Keys(views.world["c"]).get("k1")
    assert again is not None
    assert again.revoked_ms == NOW + 1


@pytest.mark.parametrize("revoked", [False, True])
def test_an_admin_key_closes_the_cluster_also_when_it_is_not_good_any_more(
    views: Views, revoked: bool
) -> None:
    views["a"].add(record("k0"), wall_ms=NOW)
    assert not views["b"].closed
    views["a"].add(record("k1", "admin", expires=NOW + 1), wall_ms=NOW)
    if revoked:
        views["a"].revoke("k1", wall_ms=NOW + 2)
    assert all(views[name].closed for name in "abc")
    views["b"].open_again()
    assert not any(views[name].closed for name in "abc")
    assert [one.id for one in views["c"].records()] == ["k0"]


@given(st.permutations(range(3)), st.booleans())
def test_no_order_of_hearing_opens_a_node_while_keys_are_changed(
    order: list[int], restarted: bool
) -> None:
    world = FakeNamespaces("a", "b", name="keys")
    one, other = Keys(world["a"]), Keys(world["b"])
    one.add(record("old", "admin"), wall_ms=NOW)
    world.hold()
    steps: list[list[tuple[str, str, Cell]]] = []
    acts: list[Callable[[], object]] = [
        lambda: one.add(record("new", "admin"), wall_ms=NOW),
        lambda: one.revoke("old", wall_ms=NOW),
        lambda: one.add(record("third", "admin"), wall_ms=NOW),
    ]
    for act in acts:
        before = world["a"].everything()
        act()
        steps.append([cell for cell in world["a"].everything() if cell not in before])
    if restarted:
        other = Keys(world.restart("b"))
    for step in order:
        world["b"].merge(steps[step])
        assert other.closed


def test_what_was_revoked_long_ago_makes_room_but_not_the_last_admin_key(views: Views) -> None:
    keys = views["a"]
    for made in (record("u1"), record("a1", "admin")):
        keys.add(made, wall_ms=NOW)
        keys.revoke(made.id, wall_ms=NOW)
    keys.add(record("u2"), wall_ms=NOW + REVOKED_KEEP_MS)
    assert [one.id for one in keys.records()] == ["a1", "u1", "u2"]
    keys.add(record("u3"), wall_ms=NOW + REVOKED_KEEP_MS + 1)
    assert [one.id for one in keys.records()] == ["a1", "u2", "u3"]
    assert views["b"].closed
    keys.add(record("a2", "admin"), wall_ms=NOW)
    keys.add(record("u4"), wall_ms=NOW + REVOKED_KEEP_MS + 1)
    assert [one.id for one in views["b"].records()] == ["a2", "u2", "u3", "u4"]


def test_there_is_an_end_to_keys() -> None:
    world = FakeNamespaces("a", name="keys")
    keys = Keys(world["a"])
    value = encode_key(record("x"))
    for number in range(KEYS_MAX):
        world["a"].put(f"k{number}", value)
    with pytest.raises(StateError) as refused:
        keys.add(record("one-more"), wall_ms=NOW)
    assert refused.value.reason == "full"
    assert keys.get("one-more") is None


def test_an_id_is_given_once(views: Views) -> None:
    views["a"].add(record("k1", tenant="first"), wall_ms=NOW)
    with pytest.raises(StateError) as refused:
        views["b"].add(record("k1", tenant="second"), wall_ms=NOW)
    assert refused.value.reason == "stale"


@pytest.mark.parametrize(
    "bad",
    [
        KeyRecord("k", "acme", "user"),
        KeyRecord("k", "acme", "user", digest=DIGEST[:31]),
        KeyRecord("k", "acme", "user", digest=DIGEST, revoked_ms=1),
        KeyRecord("k", "x" * 65, "user", digest=DIGEST),
        KeyRecord("k", "acme", "user", name="x" * 65, digest=DIGEST),
        KeyRecord("k", "acme", "Owner", digest=DIGEST),
        KeyRecord("k", "acme", "user!", digest=DIGEST),
        KeyRecord("k", "acme", "", digest=DIGEST),
        KeyRecord("k", "acme", "user", digest=DIGEST, models=("x" * 129,)),
        KeyRecord("k", "acme", "user", digest=DIGEST, networks=("10.0.0.0/8",) * 33),
        KeyRecord("k", "acme", "user", digest=DIGEST, created_ms=-1),
        KeyRecord("k", "\ud800", "user", digest=DIGEST),
    ],
)
def test_what_no_node_could_use_is_not_written(views: Views, bad: KeyRecord) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # each says something else
        views["a"].add(bad, wall_ms=NOW)
    assert views.world["a"].writes == 0


def test_what_cannot_be_read_counts_for_nothing_and_is_listed(views: Views) -> None:
    pack = msgspec.msgpack.encode
    views.world["a"].put("newer", pack({"tenant": "t", "role": "Auditor", "digest": DIGEST}))
    views.world["a"].put("broken", b"\xc1")
    views.world["a"].put("more", pack({"tenant": "t", "role": "user", "colour": "red"}))
    keys = views["b"]
    assert [one.id for one in keys.records()] == ["more"]
    assert [(one.key, one.reason) for one in keys.unreadable()] == [
        ("broken", "value"),
        ("more", "fields"),
        ("newer", "value"),
    ]
    views.world["a"].remove("broken")
    assert [one.key for one in keys.unreadable()] == ["more", "newer"]


@given(st.binary(max_size=200))
def test_any_bytes_are_a_key_or_none(value: bytes) -> None:
    world = FakeNamespaces("a", name="keys")
    keys = Keys(world["a"])
    world["a"].put("k", value)
    assert (keys.get("k") is None) or keys.get("k") == keys.records()[0]


def test_who_watches_hears_of_keys_that_came_and_went(views: Views) -> None:
    heard: list[tuple[str, bool]] = []
    views["b"].watch(lambda ids: heard.extend((key_id, views["b"].closed) for key_id in ids))
    views["a"].add(record("k1", "admin"), wall_ms=NOW)
    views["a"].revoke("k1", wall_ms=NOW)
    views["a"].open_again()
    assert heard == [("k1", True), ("k1", True), ("k1", False)]


# ── Roles of one's own, and restrictions ─────────────────────────────────────

NARROW: dict[str, Any] = {
    "models": ("llama-*",),
    "networks": ("10.0.0.0/8",),
    "routes": ("chat",),
    "max_priority": "bulk",
}


def test_a_role_of_an_operator_s_own_is_kept_by_its_name(views: Views) -> None:
    views["a"].add(record("k1", role="on-call"), wall_ms=NOW)
    found = views["b"].get("k1")
    assert found is not None
    assert (found.role, found.restricted) == ("on-call", False)
    assert not views["b"].closed


def test_restrictions_are_the_same_on_every_node_and_stay_with_a_revoked_key(views: Views) -> None:
    made = record("k1", role="admin", **NARROW)
    views["a"].add(made, wall_ms=NOW)
    assert views["b"].get("k1") == made
    assert made.restricted
    assert views["b"].closed
    revoked = views["b"].revoke("k1", wall_ms=NOW)
    assert (revoked.models, revoked.digest) == (("llama-*",), b"")
    assert views["a"].get("k1") == revoked


class OldWords(msgspec.Struct, frozen=True):
    """A key as versions read it that knew three roles and no restrictions."""

    tenant: str
    role: Literal["user", "operator", "admin"]


@pytest.mark.parametrize("fields", [{"role": "tenant_admin"}, {"role": "on-call"}, NARROW])
def test_older_versions_do_not_read_a_key_that_they_would_let_do_more(
    fields: dict[str, Any],
) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(encode_key(record("k1", **fields)), type=OldWords)
    plain = msgspec.msgpack.decode(encode_key(record("k1")), type=OldWords)
    assert plain.role == "user"


def test_a_restriction_of_a_later_version_makes_the_key_unknown_here(views: Views) -> None:
    pack = msgspec.msgpack.encode
    said = {"tenant": "t", "role": "user!", "digest": DIGEST, "models": ["m"]}
    views.world["a"].put("known", pack(said))
    views.world["a"].put("later", pack({**said, "hours": "9-17"}))
    assert [one.id for one in views["b"].records()] == ["known"]
    assert [(one.key, one.reason) for one in views["b"].unreadable()] == [("later", "value")]


def test_a_key_of_another_gateway_is_counted_as_such_also_when_it_is_revoked(views: Views) -> None:
    views["a"].add(record("k0"), wall_ms=NOW)
    assert not views["b"].foreign
    foreign = msgspec.structs.replace(record("f1"), kind=FOREIGN)
    views["a"].add(foreign, wall_ms=NOW)
    assert views["b"].get("f1") == foreign
    assert (foreign.foreign, foreign.own, views["c"].foreign) == (True, False, True)
    views["b"].revoke("f1", wall_ms=NOW)
    assert views["c"].foreign


def test_a_release_without_kinds_reads_everything_of_a_foreign_key_but_that_it_is_one() -> None:
    class Before(msgspec.Struct):
        """What such a release keeps of a key."""

        tenant: str
        role: Role
        digest: bytes = b""

    foreign = msgspec.structs.replace(record("f1", "admin"), kind=FOREIGN)
    said = msgspec.msgpack.decode(encode_key(foreign), type=Before)
    # It closes there, and its digest is none of a secret.
    assert (said.tenant, said.role, said.digest) == ("acme", "admin", DIGEST)
    assert b"kind" not in encode_key(record("k1"))


def test_a_kind_of_a_newer_release_is_neither_own_nor_foreign(views: Views) -> None:
    newer = msgspec.structs.replace(record("n1", "admin"), kind="newer")
    views["a"].add(newer, wall_ms=NOW)
    found = views["b"].get("n1")
    assert found is not None
    assert (found.own, found.foreign, views["b"].foreign, views["b"].closed) == (
        *(False, False, False),
        True,
    )


def test_room_is_made_for_many_at_a_time(views: Views, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smg_mesh.state.api_keys.KEYS_MAX", 3)
    keys = views["a"]
    keys.add(record("k1"), wall_ms=NOW)
    keys.revoke("k1", wall_ms=NOW)
    with pytest.raises(StateError, match="2 more fit, and not 3"):
        keys.make_room(3, wall_ms=NOW)
    keys.make_room(3, wall_ms=NOW + REVOKED_KEEP_MS + 1)
    for name in ("k2", "k3", "k4"):
        keys.put(record(name))
    with pytest.raises(StateError, match="no more fit"):
        keys.add(record("k5"), wall_ms=NOW)


def test_a_revoked_key_may_be_forgotten_before_its_time_and_others_may_not() -> None:
    views = Views()
    for key_id in ("good", "gone"):
        views.on["a"].put(record(key_id))
    views.on["a"].put(record("boss", "admin"))
    views.on["a"].put(msgspec.structs.replace(record("theirs"), kind=FOREIGN))
    for key_id in ("gone", "boss", "theirs"):
        views.on["b"].revoke(key_id, wall_ms=NOW + 1)
    views.on["c"].forget("gone")
    assert [view.get("gone") for view in views.on.values()] == [None] * 3
    for key_id in ("good", "boss", "theirs"):
        with pytest.raises(ValueError, match="stays known"):
            views.on["c"].forget(key_id)
    with pytest.raises(LookupError):
        views.on["c"].forget("gone")
    assert views.on["a"].closed
