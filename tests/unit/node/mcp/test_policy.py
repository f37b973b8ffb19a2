"""Policy: the table of rules, and that a request makes it stricter only."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.tool_serving import ApprovalRule, ToolFilter
from smg_node.mcp.catalog.hints import Hints
from smg_node.mcp.definition import ServerDefinition
from smg_node.mcp.policy import PINNED, Decision, decide
from smg_node.mcp.server_spec import ServerSpec, ToolRule, Trust, Verdict

NEVER = ApprovalRule(otherwise="never")
ALWAYS = ApprovalRule(otherwise="always")
READS = Hints(read_only=True)
CLOSED = Hints(read_only=True, closed_world=True)


def spec(**fields: Any) -> ServerSpec:
    return ServerSpec(ServerDefinition("s", url="http://s.test"), **fields)


@pytest.mark.parametrize(
    ("fields", "hints", "decision"),
    [
        ({}, Hints(), Decision("allow", "default")),
        ({"trust": "trusted"}, Hints(), Decision("allow", "trust: trusted")),
        ({"trust": "untrusted"}, Hints(), Decision("ask", "trust: untrusted")),
        ({"trust": "untrusted"}, READS, Decision("allow", "default")),
        ({"trust": "sandboxed"}, Hints(), Decision("deny", "trust: sandboxed")),
        ({"trust": "sandboxed"}, READS, Decision("deny", "trust: sandboxed")),
        ({"trust": "sandboxed"}, CLOSED, Decision("allow", "default")),
        ({"rules": (("dr*", "deny"),)}, Hints(), Decision("deny", "rules: dr*")),
        ({"rules": (("s/dr*", "ask"),)}, Hints(), Decision("ask", "rules: s/dr*")),
        (
            {"rules": (("x*", "deny"), ("*", "allow"), ("drop", "deny")), "trust": "sandboxed"},
            Hints(),
            Decision("allow", "rules: *"),
        ),
        (
            {"rules": (("*", "deny"),), "tools": {"drop": ToolRule(approval="allow")}},
            Hints(),
            Decision("allow", "tools.drop.approval"),
        ),
    ],
)
def test_the_operators_first_rule_that_speaks_counts(
    fields: dict[str, Any], hints: Hints, decision: Decision
) -> None:
    assert decide(spec(**fields), "drop", hints, None) == decision


@pytest.mark.parametrize(
    ("wish", "verdict", "rule"),
    [
        (ALWAYS, "ask", "require_approval"),
        (NEVER, "allow", "require_approval"),
        (ApprovalRule(never=ToolFilter(("drop",))), "allow", "require_approval.never"),
        (ApprovalRule(never=ToolFilter(("read",))), "ask", "require_approval"),
        (
            ApprovalRule(ToolFilter(("drop",)), ToolFilter(("drop",))),
            "ask",
            "require_approval.always",
        ),
        (ApprovalRule(never=ToolFilter(read_only=True)), "ask", "require_approval"),
    ],
)
def test_a_request_says_what_is_asked_about(
    wish: ApprovalRule, verdict: Verdict, rule: str
) -> None:
    assert decide(spec(), "drop", Hints(), wish) == Decision(verdict, rule, by_request=True)


@pytest.mark.parametrize(
    ("fields", "verdict", "rule"),
    [
        ({}, "ask", PINNED),
        ({"trust": "trusted"}, "ask", PINNED),
        ({"tools": {"drop": ToolRule(approval="allow")}}, "ask", PINNED),
        ({"tools": {"drop": ToolRule(approval="deny")}}, "deny", "tools.drop.approval"),
        ({"trust": "untrusted"}, "ask", "trust: untrusted"),
        ({"rules": (("*", "ask"),)}, "ask", "rules: *"),
    ],
)
def test_a_tool_that_is_not_as_it_was_pinned_is_asked_about(
    fields: dict[str, Any], verdict: Verdict, rule: str
) -> None:
    server = spec(**fields)
    assert decide(server, "drop", Hints(), None, changed=True) == Decision(verdict, rule)
    # A request cannot do away with that either.
    assert decide(server, "drop", Hints(), NEVER, changed=True).verdict == verdict


def test_a_trusted_server_is_asked_about_where_the_request_wants_it() -> None:
    assert decide(spec(trust="trusted"), "t", Hints(), ALWAYS).verdict == "ask"
    assert decide(spec(trust="trusted"), "t", Hints(), NEVER) == Decision("allow", "trust: trusted")


filters = st.none() | st.builds(
    ToolFilter, st.none() | st.sampled_from([("t",), ("x",), ()]), st.none() | st.booleans()
)
verdicts = st.sampled_from(get_args(Verdict))
hints_ = st.builds(Hints, st.booleans(), st.booleans(), st.booleans())


@given(
    st.sampled_from(get_args(Trust)),
    st.none() | verdicts,
    st.lists(st.tuples(st.sampled_from(["t", "*", "x", "s/t"]), verdicts)),
    hints_,
    st.builds(ApprovalRule, filters, filters, st.sampled_from(["always", "never"])),
)
def test_no_request_loosens_anything(
    trust: Any, own: Any, rules: Any, hints: Hints, wish: ApprovalRule
) -> None:
    order = ["allow", "ask", "deny"]
    tools = {"t": ToolRule(approval=own)}
    server = spec(trust=trust, rules=tuple(rules), tools=tools)
    alone, wished = decide(server, "t", hints, None), decide(server, "t", hints, wish)
    assert order.index(wished.verdict) >= order.index(alone.verdict)
    assert wished.verdict != "deny" or alone.verdict == "deny"
