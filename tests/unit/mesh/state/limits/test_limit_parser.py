"""Limits as people write them: what is understood, and which field is named when something is not."""

from typing import Any

import pytest

from smg_mesh.escrow.limit_model import KEY_CHARS_MAX
from smg_mesh.state.limits.limit_parser import LimitError, read_rule
from smg_mesh.state.limits.limit_rule import Amount, LimitRule, limit_key
from smg_mesh.state.limits.limit_scope import Scope, ScopeError, patterns, read_scope
from smg_mesh.state.limits.limit_window import format_window, read_window

REQUESTS = {"unit": "requests", "amount": 60, "window": "minute"}


def rule_of(body: dict[str, Any], *, durable: bool = True) -> LimitRule:
    return read_rule(Scope(tenant="a"), body, durable=durable)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        ("global", ""),
        ("tenant=acme", "tenant=acme"),
        (
            "model=meta-llama/Llama-3.1-70B,tenant=acme",
            "tenant=acme,model=meta-llama/Llama-3.1-70B",
        ),
        (" key = k1 , tenant=* ", "tenant=*,key=k1"),
        ("model=a%2Cb", "model=a%2Cb"),
        ("model=a=b", "model=a%3Db"),
        ("model=größe", "model=gr%C3%B6%C3%9Fe"),
        ("model=%2A", "model=*"),
        ("provider=openai-a", "provider=openai-a"),
        ("provider=*", "provider=*"),
        ("tool=search/web", "tool=search/web"),
        ("tool=search/repos/list", "tool=search/repos/list"),
        ("tool=search/*", "tool=search/*"),
        ("tool=*", "tool=*"),
        ("tool=search/a%2Cb=c", "tool=search/a%2Cb%3Dc"),
        ("tool=search/web,tenant=acme", "tenant=acme,tool=search/web"),
        ("tool=search/%2A , model=m, tenant=*", "tenant=*,model=m,tool=search/*"),
    ],
)
def test_a_scope_has_one_text(text: str, canonical: str) -> None:
    scope = read_scope(text)
    assert scope.text == canonical
    assert read_scope(canonical) == scope


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("acme", "say tenant="),
        ("user=acme", "say tenant="),
        ("tenant=a,tenant=b", "twice"),
        ("tenant=", "empty"),
        ("tenant=a,", "say tenant="),
        ("model=llama*", "stands alone"),
        ("provider=a,model=m", "stands alone"),
        ("tenant=t,provider=*", "stands alone"),
        ("provider=p,tool=s/t", "stands alone"),
        ("tenant=a,key=k,model=m,tool=s/t", "at most 3"),
        ("tool=", "empty"),
        ("tool=search", "SERVER/TOOL"),
        ("tool=search/", "SERVER/TOOL"),
        ("tool=/web", "SERVER/TOOL"),
        ("tool=*/web", "stands for all tools"),
        ("tool=*/*", "stands for all tools"),
        ("tool=search/web*", "stands for all tools"),
        ("tool=sea*/web", "stands for all tools"),
        ("tool=search/w\nb", "cannot be shown"),
        (f"tool=s/{'t' * 255}", "longer"),
        ("model=a\nb", "cannot be shown"),
        ("model=%ff", "cannot be shown"),
        ("model=a%1fb", "cannot be shown"),
        (f"model={'m' * 257}", "longer"),
    ],
)
def test_a_scope_that_names_nobody_says_why(text: str, says: str) -> None:
    with pytest.raises(ScopeError, match=says):
        read_scope(text)


def test_long_names_are_cut_and_stay_different() -> None:
    one, other = "m" * 200 + "1", "m" * 200 + "2"
    texts = {Scope(model=one).text, Scope(model=other).text, Scope(tenant="t", model=one).text}
    assert len(texts) == 3
    for text in sorted(texts):
        assert read_scope(text).text == text
    cut = Scope(key="k", tenant="t", model="ü" * 200).text
    assert read_scope(cut).text == cut


@pytest.mark.parametrize(
    "others", [{}, {"tenant": "t" * 99}, {"tenant": "t" * 99, "model": "m" * 99}]
)
@pytest.mark.parametrize("server", ["s", "s" * 64])
def test_long_names_of_tools_are_cut_and_name_a_server_and_a_tool(
    others: dict[str, str], server: str
) -> None:
    tools = ["w" * 190 + "1", "w" * 190 + "2", "ü" * 100, "a/b" * 50, "*"]
    texts = {Scope(**others, tool=f"{server}/{tool}").text for tool in tools}
    assert len(texts) == len(tools)
    for text in sorted(texts):
        assert read_scope(text).text == text
        assert len(limit_key(text, "requests", 604_800_000)) <= KEY_CHARS_MAX


def test_all_tools_of_a_server_are_none_of_each_tool() -> None:
    assert list(patterns("tool=search/web")) == ["tool=search/web", "tool=*"]
    assert list(patterns("tool=search/*")) == ["tool=search/*"]
    assert list(patterns("tenant=a,tool=search/*")) == [
        "tenant=a,tool=search/*",
        "tenant=*,tool=search/*",
    ]
    assert list(patterns("tenant=a,model=m,tool=s/t")) == [
        "tenant=a,model=m,tool=s/t",
        "tenant=a,model=m,tool=*",
        "tenant=a,model=*,tool=s/t",
        "tenant=*,model=m,tool=s/t",
        "tenant=a,model=*,tool=*",
        "tenant=*,model=m,tool=*",
        "tenant=*,model=*,tool=s/t",
        "tenant=*,model=*,tool=*",
    ]


@pytest.mark.parametrize(
    ("body", "field", "says"),
    [
        ({"amounts": [{**REQUESTS, "unit": "tokens"}]}, "amounts[0].unit", "requests or cost"),
        (
            {"amounts": [REQUESTS, {**REQUESTS, "unit": "output_tokens"}]},
            "amounts[1].unit",
            "no tokens",
        ),
        ({"amounts": [REQUESTS], "on_exhausted": "finish"}, "on_exhausted", "is debt"),
        ({"amounts": [REQUESTS], "cached_weight": 0.5}, "cached_weight", "no tokens"),
    ],
)
def test_what_a_run_of_a_tool_does_not_have_is_not_limited(
    body: dict[str, Any], field: str, says: str
) -> None:
    with pytest.raises(LimitError, match=says) as refused:
        read_rule(Scope(tenant="a", tool="s/t"), body, durable=True)
    assert refused.value.field == field


def test_a_limit_of_a_tool_is_on_runs_cost_and_what_is_open() -> None:
    cost = {"unit": "cost", "amount": 5_000_000, "window": "day"}
    body = {"amounts": [REQUESTS, cost], "concurrency": 4, "mode": "strict"}
    rule = read_rule(Scope(model="m", tool="search/*"), body, durable=True)
    assert (rule.model, rule.tool, rule.scope) == ("m", "search/*", "model=m,tool=search/*")
    assert [one.unit for one in rule.limits] == ["requests", "concurrent", "cost"]


def test_the_scopes_that_speak_of_one_come_the_most_exact_first() -> None:
    assert list(patterns("")) == [""]
    assert list(patterns("model=m")) == ["model=m", "model=*"]
    assert list(patterns("tenant=a,key=k")) == [
        "tenant=a,key=k",
        "tenant=*,key=k",
        "tenant=a,key=*",
        "tenant=*,key=*",
    ]
    three = list(patterns("tenant=a,key=k,model=m"))
    assert len(three) == len(set(three)) == 8
    assert three[1:4] == [
        "tenant=a,key=k,model=*",
        "tenant=*,key=k,model=m",
        "tenant=a,key=*,model=m",
    ]


@pytest.mark.parametrize(
    ("text", "window_ms"),
    [
        ("second", 1_000),
        ("minute", 60_000),
        ("hour", 3_600_000),
        ("day", 86_400_000),
        ("10s", 10_000),
        ("5m", 300_000),
        ("2h", 7_200_000),
        ("31d", 31 * 86_400_000),
    ],
)
def test_a_window_is_written_and_read(text: str, window_ms: int) -> None:
    assert read_window(text) == window_ms
    assert read_window(format_window(window_ms)) == window_ms
    assert format_window(window_ms) == text


@pytest.mark.parametrize(
    "text", ["", "0s", "-1s", "32d", "1.5s", "month", "100ms", "60", "٣s", "s"]
)
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        read_window(text)


def test_a_whole_rule_is_read() -> None:
    rule = rule_of(
        {
            "amounts": [REQUESTS, {"unit": "cost", "amount": 25_000_000, "window": "day"}],
            "concurrency": 8,
            "mode": "strict",
            "standing": 1,
            "reserve": "worst_case",
            "on_exhausted": "finish",
            "cached_weight": 0.1,
            "volatile": False,
            "note": "as agreed",
        }
    )
    assert rule == LimitRule(
        tenant="a",
        amounts=(Amount("requests", 60, 60_000), Amount("cost", 25_000_000, 86_400_000)),
        concurrency=8,
        mode="strict",
        standing=1.0,
        reserve="worst_case",
        on_exhausted="finish",
        cached_weight=0.1,
        note="as agreed",
    )
    assert rule_of({"amounts": [REQUESTS], "note": None, "mode": None}).mode == "balanced"
    assert rule_of({"concurrency": 0}).limits == (Amount("concurrent", 0, 0),)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "amounts"),
        ({"amounts": []}, "amounts"),
        ({"amounts": "60/minute"}, "amounts"),
        ({"amounts": [REQUESTS] * 17}, "amounts"),
        ({"amounts": [REQUESTS, REQUESTS]}, "amounts[1]"),
        ({"amounts": [REQUESTS, {**REQUESTS, "window": "60s"}]}, "amounts[1]"),
        ({"amounts": ["60/minute"]}, "amounts[0]"),
        ({"amounts": [{**REQUESTS, "unit": "concurrent"}]}, "amounts[0].unit"),
        ({"amounts": [{**REQUESTS, "unit": ["requests"]}]}, "amounts[0].unit"),
        ({"amounts": [{**REQUESTS, "amount": -1}]}, "amounts[0].amount"),
        ({"amounts": [{**REQUESTS, "amount": True}]}, "amounts[0].amount"),
        ({"amounts": [{**REQUESTS, "amount": 1.5}]}, "amounts[0].amount"),
        ({"amounts": [{**REQUESTS, "amount": (1 << 53) + 1}]}, "amounts[0].amount"),
        ({"amounts": [{**REQUESTS, "window": 60}]}, "amounts[0].window"),
        ({"amounts": [{**REQUESTS, "window": "month"}]}, "amounts[0].window"),
        ({"amounts": [{**REQUESTS, "per": "minute"}]}, "amounts[0].per"),
        ({"amounts": [REQUESTS], "concurrency": -1}, "concurrency"),
        ({"amounts": [REQUESTS], "concurrency": 2.5}, "concurrency"),
        ({"amounts": [REQUESTS], "mode": "lax"}, "mode"),
        ({"amounts": [REQUESTS], "standing": 1.1}, "standing"),
        ({"amounts": [REQUESTS], "standing": float("nan")}, "standing"),
        ({"amounts": [REQUESTS], "reserve": 1}, "reserve"),
        ({"amounts": [REQUESTS], "on_exhausted": "stop"}, "on_exhausted"),
        ({"amounts": [REQUESTS], "cached_weight": "1"}, "cached_weight"),
        ({"amounts": [REQUESTS], "volatile": 1}, "volatile"),
        ({"amounts": [REQUESTS], "note": "n" * 257}, "note"),
        ({"amounts": [REQUESTS], "note": "a\x1b[2J"}, "note"),
        ({"amounts": [REQUESTS], "requests": 5}, "requests"),
    ],
)
def test_a_mistake_names_its_field(body: dict[str, Any], field: str) -> None:
    with pytest.raises(LimitError) as error:
        rule_of(body)
    assert error.value.field == field


def test_an_hour_needs_a_place_to_be_written_down_or_is_said_to_be_volatile() -> None:
    body = {"amounts": [REQUESTS, {"unit": "tokens", "amount": 5, "window": "hour"}]}
    assert rule_of(body).amounts[1].window_ms == 3_600_000
    assert rule_of({**body, "volatile": True}, durable=False).volatile
    assert not rule_of({"amounts": [REQUESTS]}, durable=False).volatile
    with pytest.raises(LimitError, match="data directory") as error:
        rule_of(body, durable=False)
    assert error.value.field == "amounts[1].window"
