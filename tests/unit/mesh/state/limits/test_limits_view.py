"""Limits: one rule for each scope on all nodes, what they come to, and what was allowed before."""

import msgspec
import pytest

from smg_mesh.crdt.namespace import StateError
from smg_mesh.escrow.limit_model import KEY_CHARS_MAX, Roster, slot_of
from smg_mesh.state.limits.limit_records import stored
from smg_mesh.state.limits.limit_rule import Amount, LimitRule, read_record, write_record
from smg_mesh.state.limits.limits_view import LimitError, Matched
from smg_mesh.state.limits.older_amounts import OLDER_MAX
from support.state.fake_namespace import DAY_MS
from support.state.limit_views import MINUTE, SECOND, Views, requests


@pytest.fixture
def views() -> Views:
    return Views()


def keys(found: object) -> list[str]:
    assert isinstance(found, tuple)
    assert all(isinstance(one, Matched) for one in found)
    return [one.key for one in found]


def test_a_rule_is_a_limit_for_each_of_its_amounts_on_every_node(views: Views) -> None:
    rule = LimitRule(
        tenant="acme",
        amounts=(Amount("tokens", 100_000, MINUTE), Amount("requests", 60, MINUTE)),
        concurrency=8,
        mode="strict",
        standing=0.25,
    )
    written = views["a"].put(rule, version=0)
    assert written.scope == "tenant=acme"
    for name in "abc":
        limit = views.limit("tenant=acme#requests/60000", name)
        assert (limit.unit, limit.amount, limit.window_ms) == ("requests", 60, MINUTE)
        assert (limit.mode, limit.standing, limit.older) == ("strict", 0.25, ())
        assert limit.version == written.version
        assert views.limit("tenant=acme#concurrent/0", name).amount == 8
        assert keys(views[name].matching("acme", "k1", "m")) == [
            "tenant=acme#requests/60000",
            "tenant=acme#concurrent/0",
            "tenant=acme#tokens/60000",
        ]
        assert views[name].matching("other", "k1", "m") == ()
        rule_there = views[name].rule("tenant=acme")
        assert rule_there is not None
        assert rule_there.rule == rule


@pytest.mark.parametrize(
    "key",
    [
        "",
        "#",
        "tenant=acme",
        "tenant=acme#requests",
        "tenant=acme#requests/",
        "tenant=acme#requests/x",
        "tenant=acme#requests/1000",
        "tenant=acme#tokens/60000",
        "tenant=b#requests/60000",
        "tenant=*#requests/60000",
        "tenant=#requests/60000",
        "tenant=acme,tenant=acme#requests/60000",
        "acme#requests/60000",
        "model=m,tenant=acme#requests/60000",
        ",".join(["tenant=acme"] * 40) + "#requests/60000",
    ],
)
def test_what_nobody_defined_is_no_limit(views: Views, key: str) -> None:
    views["a"].put(requests(60, MINUTE, tenant="acme"), version=0)
    views["a"].put(requests(60, MINUTE, tenant="*", model="x"), version=0)
    assert views["a"].get(key) is None


def test_a_star_is_a_limit_for_each_by_itself(views: Views) -> None:
    views["a"].put(requests(10, tenant="*"), version=0)
    assert keys(views["b"].matching("x", "", "m")) == ["tenant=x#requests/1000"]
    assert keys(views["b"].matching("y", "", "m")) == ["tenant=y#requests/1000"]
    assert views.limit("tenant=x#requests/1000").amount == 10
    assert views["b"].matching("x", "", "m")[0].scope == "tenant=*"
    assert slot_of("tenant=x#requests/1000") == slot_of("tenant=x#tokens/60000")


def test_who_has_no_name_is_not_each_of_those_who_have(views: Views) -> None:
    views["a"].put(requests(10, tenant="*"), version=0)
    views["a"].put(requests(10, key="*"), version=0)
    views["a"].put(requests(10, model="*"), version=0)
    views["a"].put(requests(99), version=0)
    assert keys(views["a"].matching("", "", "m")) == ["#requests/1000", "model=m#requests/1000"]
    assert keys(views["a"].matching("*", "*", "*")) == ["#requests/1000"]


def test_the_rule_that_names_somebody_counts_instead_and_goes_on_with_what_was_spent(
    views: Views,
) -> None:
    views["a"].put(requests(10, tenant="*"), version=0)
    key = views["a"].matching("vip", "", "m")[0].key
    views["a"].put(requests(500, tenant="vip"), version=0)
    (now,) = views["c"].matching("vip", "", "m")
    assert (now.key, now.amount, now.scope) == (key, 500, "tenant=vip")
    assert views.limit(key, "c").amount == 500
    views["b"].remove("tenant=vip", version=None)
    assert views.limit(key, "c").amount == 10
    # Somebody may not have heard: 500 at half are more than 10 at half.
    assert views.limit(key, "c").older == ((500, 0.5),)


def test_of_rules_with_stars_the_one_with_the_key_then_the_tenant_is_more_exact(
    views: Views,
) -> None:
    order = [("a", "*", "*"), ("*", "k", "*"), ("a", "*", "m"), ("*", "k", "m"), ("a", "k", "*")]
    views["a"].put(requests(1, tenant="*", key="*", model="*"), version=0)
    for amount, (tenant, key, model) in enumerate(order, 2):
        views["a"].put(requests(amount, tenant=tenant, key=key, model=model), version=0)
        (found,) = views["a"].matching("a", "k", "m")
        assert found.amount == amount
        assert found.key == "tenant=a,key=k,model=m#requests/1000"


def test_an_amount_that_was_lowered_is_remembered_and_a_raised_one_needs_not_be(
    views: Views,
) -> None:
    key = "#requests/1000"
    views["a"].put(requests(100), version=0)
    views["a"].put(requests(1000), version=None)
    assert views.limit(key).older == ()
    views.world.wall_ms += 1_000
    views["b"].put(requests(10, standing=1.0), version=None)
    assert views.limit(key, "c").older == ((1000, 0.5),)
    roster = Roster(b"r" * 16, 1, ("a", "b"), (2, 2))
    assert views.limit(key).mintable(roster, ("a", "b")) == 0
    assert views.limit(key).mintable(roster, ("a",)) == 0
    views["b"].put(requests(600, standing=0.5), version=None)
    assert views.limit(key).mintable(roster, ("a", "b")) == 300
    assert views.limit(key).mintable(roster, ("a",)) == 600 - 150 - 250


def test_what_was_allowed_before_is_forgotten_when_no_node_can_remember_it(views: Views) -> None:
    key = "#requests/1000"
    views["a"].put(requests(1000), version=0)
    views["a"].put(requests(10), version=None)
    views.world.wall_ms += 7 * DAY_MS - 1
    assert views.limit(key).older == ((1000, 0.5),)
    views.world.wall_ms += 1_001
    assert views.limit(key).older == ()


def test_what_was_allowed_outlives_a_rule_that_was_taken_away(views: Views) -> None:
    key = "#requests/1000"
    views["a"].put(requests(1000), version=0)
    views["b"].remove("global", version=None)
    assert views["a"].rules() == []
    assert views["a"].rule("") is None
    assert views["a"].get(key) is None
    assert views["a"].matching("", "", "m") == ()
    assert views["a"].basis() == bytes(8)
    written = views["c"].put(requests(10), version=0)
    assert views.limit(key).older == ((1000, 0.5),)
    assert views.limit(key).version == written.version
    views["c"].remove("global", version=written.version)
    # Windows that began before then may run a little longer.
    views.world.wall_ms += 7 * DAY_MS + 2_001
    views["a"].put(requests(5, tenant="x"), version=0)
    assert [held.key for held in views.world["b"].items()] == ["tenant=x"]


def test_changes_without_end_leave_a_few_numbers_that_cover_them_all(views: Views) -> None:
    key = "#requests/1000"
    amounts = [10_000 - 100 * step for step in range(40)]
    for amount in amounts:
        views["a"].put(requests(amount), version=None)
        views.world.wall_ms += 60_000
    older = views.limit(key).older
    assert len(older) <= OLDER_MAX
    assert max(older) == (10_000, 0.5)
    # The largest of the merged ones is kept for as long as the last of them mattered.
    views.world.wall_ms += 7 * DAY_MS - 20 * 60_000
    left = views.limit(key).older
    assert left
    assert max(left)[0] >= amounts[20]


def test_rules_written_on_both_sides_of_a_cut_are_shown_and_the_larger_one_is_allowed_for(
    views: Views,
) -> None:
    views["a"].put(requests(100), version=0)
    views.world.cut("a", "bc")
    views["a"].put(requests(1000), version=None)
    views.world.wall_ms += 10
    views["b"].put(requests(50), version=None)
    before = views["c"].get("#requests/1000")
    assert before is not None
    assert before.older == ((100, 0.5),)
    views.world.heal()
    shown = views["c"].rule("global")
    assert shown is not None
    assert shown.rule.amounts[0].amount == 50
    assert [rival.rule.amounts[0].amount for rival in shown.conflicts] == [1000]
    views.world.wall_ms += 1_000
    assert views.limit("#requests/1000", "c").older == ((1000, 0.5),)
    views["c"].put(requests(60), version=shown.version)
    again = views["a"].rule("global")
    assert again is not None
    assert again.conflicts == ()
    assert views.limit("#requests/1000").older == ((1000, 0.5),)


def test_a_writer_who_has_not_seen_the_present_rule_is_told_so(views: Views) -> None:
    written = views["a"].put(requests(1), version=0)
    with pytest.raises(StateError):
        views["b"].put(requests(2), version=0)
    with pytest.raises(StateError):
        views["b"].put(requests(2), version=written.version + 1)
    with pytest.raises(StateError):
        views["b"].remove("global", version=0)
    views["b"].remove("global", version=written.version)
    views["b"].put(requests(3), version=0)


def test_a_rule_can_always_be_taken_away(views: Views) -> None:
    views["a"].put(requests(1), version=0)
    views.world["b"].full = lambda _: True
    views["b"].remove("global", version=None)
    assert views["a"].rule("global") is None
    views["c"].remove("tenant=nobody", version=None)
    with pytest.raises(StateError):
        views["b"].put(requests(1, tenant="x"), version=0)


def test_the_basis_is_the_same_where_the_same_is_defined(views: Views) -> None:
    assert {views[name].basis() for name in "abc"} == {bytes(8)}
    versions = [views["a"].version]
    views["a"].put(requests(1), version=0)
    versions.append(views["a"].version)
    first = views["a"].basis()
    assert len(first) == 8
    assert first != bytes(8)
    views.world.cut("a", "bc")
    views["a"].put(requests(2), version=None)
    versions.append(views["a"].version)
    assert views["b"].basis() == first
    assert views["a"].basis() != first
    views.world.heal()
    assert {views[name].basis() for name in "abc"} == {views["a"].basis()}
    assert len(set(versions)) == 3


def test_what_this_version_cannot_read_limits_nothing_and_is_listed(views: Views) -> None:
    views.world["a"].put("tenant=x", b"\xc1")
    views.world["a"].put("tenant=y", b"\x80")  # a rule, but of another scope than its key
    views["a"].put(requests(1), version=0)
    assert [one.key for one in views["b"].unreadable()] == ["tenant=x"]
    assert [rule.scope for rule in views["b"].rules()] == ["global"]
    assert len(views["b"]) == 1
    views["b"].put(requests(1, tenant="x"), version=None)
    assert views["a"].unreadable() == []
    assert len(views["a"]) == 2


def test_no_key_is_longer_than_a_packet_can_name(views: Views) -> None:
    longest = LimitRule(
        tenant="t" * 256,
        key="ü" * 256,
        model="m" * 256,
        amounts=(Amount("output_tokens", 1, 31 * DAY_MS),),
        concurrency=1,
    )
    for fields in ({}, {"tenant": ""}, {"tenant": "", "key": ""}, {"model": ""}):
        rule = LimitRule(
            **{  # type: ignore[arg-type]  # its own fields
                "tenant": longest.tenant,
                "key": longest.key,
                "model": longest.model,
                "amounts": longest.amounts,
                "concurrency": 1,
                **fields,
            }
        )
        views["a"].put(rule, version=0)
        found = views["a"].matching(rule.tenant, rule.key, rule.model)
        assert {len(one.key) <= min(152, KEY_CHARS_MAX) for one in found} == {True}
        assert views["a"].get(found[0].key) is not None


def test_a_record_with_all_its_past_fits(views: Views) -> None:
    amounts = tuple(Amount("requests", 9_000_000, (at + 1) * SECOND) for at in range(16))
    for step in range(12):
        lower = tuple(Amount(a.unit, a.amount - step, a.window_ms) for a in amounts)
        views["a"].put(LimitRule(amounts=lower, note="n" * 256), version=None)
        views.world.wall_ms += 1
    assert len(views.world["a"].items()[0].value or b"") < 16_384


def test_watchers_hear_of_scopes(views: Views) -> None:
    heard: list[list[str]] = []
    views["c"].watch(lambda scopes: heard.append(list(scopes)))
    views["a"].put(requests(1), version=0)
    views["a"].put(requests(1, tenant="x"), version=0)
    assert heard == [["global"], ["tenant=x"]]


def test_what_was_put_together_is_found_again_and_follows_every_change(views: Views) -> None:
    views["a"].put(requests(1, tenant="*"), version=0)
    key = "tenant=x#requests/1000"
    assert views["a"].get(key) is views["a"].get(key)
    views["b"].put(requests(2, tenant="*"), version=None)
    assert views.limit(key).amount == 2
    views.world.wall_ms -= 3_600_000
    assert views.limit(key).amount == 2


def test_the_rule_that_counts_for_somebody_is_found(views: Views) -> None:
    views["a"].put(requests(1, tenant="*"), version=0)
    views["a"].put(requests(2, tenant="vip"), version=0)
    views["a"].put(requests(3), version=0)
    scopes = ["tenant=x", "tenant=vip", "tenant=*", "global", "", "model=m", "tenant=*,model=m"]
    found = [views["b"].counting(scope) for scope in scopes]
    assert [one.scope if one else None for one in found] == [
        "tenant=*",
        "tenant=vip",
        "tenant=*",
        "global",
        "global",
        None,
        None,
    ]


def test_words_are_read_by_the_view(views: Views) -> None:
    view = views["a"]
    assert view.scope("model=m,tenant=a") == "tenant=a,model=m"
    assert view.scope("") == "global"
    body = {"concurrency": 3}
    assert view.read("tenant=a", body, durable=False).concurrency == 3
    assert set(body) <= set(view.fields)
    for wrong in (lambda: view.scope("x"), lambda: view.read("x", body, durable=True)):
        with pytest.raises(LimitError) as error:
            wrong()
        assert error.value.field == "scope"


def test_calls_of_a_provider_meet_its_limits_and_requests_do_not(views: Views) -> None:
    for rule in (
        requests(600, MINUTE, provider="a", mode="strict"),
        requests(60, MINUTE, provider="*"),
        requests(6, MINUTE),
        requests(7, MINUTE, model="*"),
    ):
        views["a"].put(rule, version=0)
    for name in "abc":
        view = views[name]
        assert keys(view.of_provider("a")) == ["provider=a#requests/60000"]
        assert keys(view.of_provider("b")) == ["provider=b#requests/60000"]
        assert keys(view.of_provider("")) == keys(view.of_provider("*")) == []
        assert views.limit("provider=a#requests/60000", name).amount == 600
        assert views.limit("provider=b#requests/60000", name).amount == 60
        assert keys(view.matching("t", "k", "m")) == [
            "#requests/60000",
            "model=m#requests/60000",
        ]
        assert view.keys("provider=a") == ["provider=a#requests/60000"]
        assert view.get("tenant=t,provider=a#requests/60000") is None
    views["b"].remove("provider=a", version=None)
    assert keys(views["c"].of_provider("a")) == ["provider=a#requests/60000"]
    assert views.limit("provider=a#requests/60000", "c").amount == 60


def test_a_release_that_knows_no_providers_passes_their_limits_over(views: Views) -> None:
    """It reads such a record without the field: a limit of all requests, were it not under another key."""
    rule = requests(600, MINUTE, provider="a")
    written = views["a"].put(rule, version=0)
    data = msgspec.msgpack.decode(write_record(written.rule, ()))
    del data["provider"]
    read = read_record(msgspec.msgpack.encode(data))
    assert stored(read.scope) == "global" != written.scope


def test_a_provider_s_answers_that_began_are_not_ended(views: Views) -> None:
    body = {"amounts": [{"unit": "tokens", "amount": 5, "window": "minute"}]}
    assert views["a"].read("provider=a", body, durable=True).provider == "a"
    with pytest.raises(LimitError) as refused:
        views["a"].read("provider=a", {**body, "on_exhausted": "finish"}, durable=True)
    assert refused.value.field == "on_exhausted"
