"""Limits of tools: which rules a run meets, which a request does, and what other releases make of them."""

import msgspec
import pytest

from smg_mesh.state.limits.limit_records import stored
from smg_mesh.state.limits.limit_rule import LimitRule, read_record, write_record
from smg_mesh.state.limits.limit_scope import Scope, is_instance
from support.state.limit_views import MINUTE, Views, requests


@pytest.fixture
def views() -> Views:
    return Views()


def met(views: Views, *who: str, name: str = "c") -> list[str]:
    """Return the scopes and instances that a run of (tenant, key, model, tool) meets."""
    return [f"{one.scope} as {one.key.partition('#')[0]}" for one in views[name].of_tool(*who)]


def write(views: Views, *scopes: dict[str, str]) -> None:
    for amount, scope in enumerate(scopes, 1):
        views["a"].put(requests(amount, MINUTE, **scope), version=0)


def test_runs_meet_limits_of_tools_and_requests_and_calls_meet_the_others(views: Views) -> None:
    write(views, {"tool": "search/web"}, {"tool": "search/*"}, {"tool": "*"})
    write(views, {}, {"tenant": "*"}, {"model": "*"}, {"key": "*"}, {"provider": "*"})
    run = ("t", "k", "m", "search/web")
    assert met(views, *run) == [
        "tool=search/* as tool=search/*",
        "tool=search/web as tool=search/web",
    ]
    assert [one.key for one in views["b"].matching("t", "k", "m")] == [
        "#requests/60000",
        "key=k#requests/60000",
        "model=m#requests/60000",
        "tenant=t#requests/60000",
    ]
    assert [one.key for one in views["b"].of_provider("p")] == ["provider=p#requests/60000"]
    assert [one.key for one in views["b"].of_provider("search/web")] == [
        "provider=search/web#requests/60000"
    ]


@pytest.mark.parametrize(
    ("scope", "meets", "passes"),
    [
        ("tool=s/t", ["- - - s/t", "a k m s/t"], ["a k m s/u", "a k m r/t", "a k m s/t/t"]),
        ("tool=s/*", ["- - - s/t", "a k m s/u", "a k m s/t/t"], ["a k m r/t", "a k m ss/t"]),
        ("tool=*", ["- - - s/t", "a k m r/u"], ["a k m -"]),
        ("tenant=a,tool=s/t", ["a - - s/t", "a k m s/t"], ["b k m s/t", "- k m s/t"]),
        ("tenant=*,tool=s/*", ["a - - s/t", "b k m s/u"], ["- k m s/t", "a k m r/t"]),
        ("key=k,tool=s/t", ["- k - s/t"], ["a j m s/t", "a - m s/t"]),
        ("model=m,tool=s/t", ["- - m s/t"], ["a k n s/t", "a k - s/t"]),
        ("tenant=a,model=m,tool=s/*", ["a - m s/t"], ["a - n s/t", "b - m s/t"]),
        ("tenant=a,key=k,tool=*", ["a k - s/t", "a k m r/t"], ["a j m s/t", "b k m s/t"]),
        ("provider=s/t", [], ["a k m s/t"]),
        ("global", [], ["a k m s/t"]),
        ("tenant=a,key=k,model=m", [], ["a k m s/t"]),
    ],
)
def test_whose_runs_a_scope_is_for(
    views: Views, scope: str, meets: list[str], passes: list[str]
) -> None:
    body = {"amounts": [{"unit": "requests", "amount": 5, "window": "minute"}]}
    views["a"].put(views["a"].read(scope, body, durable=True), version=0)
    for runs, found in ((meets, 1), (passes, 0)):
        for run in runs:
            who = ["" if word == "-" else word for word in run.split()]
            assert len(views["b"].of_tool(*who)) == found, run


def test_each_tool_by_itself_unless_one_is_named(views: Views) -> None:
    write(views, {"tool": "*"}, {"tool": "s/t"}, {"tenant": "*", "tool": "*"})
    assert met(views, "", "", "", "s/t") == ["tool=s/t as tool=s/t"]
    assert met(views, "", "", "", "s/u") == ["tool=* as tool=s/u"]
    assert met(views, "a", "", "", "s/u") == [
        "tenant=*,tool=* as tenant=a,tool=s/u",
        "tool=* as tool=s/u",
    ]
    assert views.limit("tool=s/u#requests/60000").amount == 1
    assert views.limit("tool=s/t#requests/60000").amount == 2
    # No run is of all tools of a server: those have no limit together that nobody set.
    assert views["a"].get("tool=s/*#requests/60000") is None


def test_all_tools_of_a_server_have_one_number_together(views: Views) -> None:
    write(views, {"tool": "s/*"})
    keys = {
        one.key for tool in ("s/t", "s/u", "s/*") for one in views["a"].of_tool("", "", "", tool)
    }
    assert keys == {"tool=s/*#requests/60000"}
    assert views.limit("tool=s/*#requests/60000").amount == 1
    assert views["a"].keys("tool=s/*") == ["tool=s/*#requests/60000"]
    assert views["a"].keys("tool=*") == ()
    assert views["a"].get("tool=s/t#requests/60000") is None
    counting = views["a"].counting("tool=s/*")
    assert counting is not None
    assert counting.rule.tool == "s/*"


def test_a_tool_that_is_named_like_all_of_them_is_one_of_them(views: Views) -> None:
    write(views, {"tool": "s/*"}, {"tool": "*"})
    assert met(views, "", "", "", "s/*") == ["tool=* as tool=s/%252A", "tool=s/* as tool=s/*"]


def test_names_that_keys_cannot_hold_are_encoded_alike_in_rules_and_runs(views: Views) -> None:
    tool = "search/a,b=c#ü" + "x" * 200
    views["a"].put(requests(5, MINUTE, tenant="t", tool=tool), version=0)
    (found,) = views["b"].of_tool("t", "", "", tool)
    assert found.amount == 5
    assert views.limit(found.key, "c").amount == 5


def test_a_release_that_knows_no_tools_passes_their_limits_over(views: Views) -> None:
    """It reads such a record without the field: a limit of requests, were it not under another key."""
    for scope in ({"tool": "s/t"}, {"tenant": "a", "tool": "s/*"}, {"model": "*", "tool": "*"}):
        written = views["a"].put(requests(600, MINUTE, **scope), version=0)
        data = msgspec.msgpack.decode(write_record(written.rule, ()))
        del data["tool"]
        assert stored(read_record(msgspec.msgpack.encode(data)).scope) != written.scope


def test_a_record_of_a_release_to_come_that_names_more_limits_nothing(views: Views) -> None:
    rule = LimitRule("t", "k", "m", requests(9).amounts, tool="s/t")
    assert rule.scope == Scope("t", "k", "m", tool="s/t").text
    views.world["a"].put(rule.scope, write_record(rule, ()))
    assert not is_instance(rule.scope)
    (found,) = views["b"].of_tool("t", "k", "m", "s/t")
    assert views["b"].get(found.key) is None
