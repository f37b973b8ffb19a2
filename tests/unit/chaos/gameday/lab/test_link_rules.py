import pytest

from smg_chaos.gameday.lab.link_rules import (
    BLOCKED,
    CLEAR,
    LinkRule,
    RuleError,
    check,
    cut,
    rule_of,
    rules_from,
)

ANYWHERE = LinkRule(loss=0.1)
FROM_A = LinkRule(loss=0.2)
TO_B = LinkRule(loss=0.3)
A_TO_B = LinkRule(loss=0.4)


def test_the_most_exact_name_counts_and_counts_alone() -> None:
    rules = {"*": ANYWHERE, "a>*": FROM_A, "*>b": TO_B, "a>b": A_TO_B}
    assert rule_of(rules, "a", "b") is A_TO_B
    assert rule_of(rules, "a", "c") is FROM_A
    assert rule_of(rules, "c", "b") is TO_B
    assert rule_of(rules, "c", "d") is ANYWHERE
    del rules["a>b"]
    assert rule_of(rules, "a", "b") is FROM_A
    assert rule_of({}, "a", "b") == CLEAR


def test_a_rule_has_a_direction() -> None:
    assert rule_of({"a>b": BLOCKED}, "b", "a") == CLEAR


def test_a_cut_blocks_both_ways_and_leaves_each_side_whole() -> None:
    rules = cut(["a", "b"], ["c"])
    assert rules == {"a>c": BLOCKED, "b>c": BLOCKED, "c>a": BLOCKED, "c>b": BLOCKED}


def test_rules_are_read_from_json() -> None:
    content = b'{"a>b": {"delay_ms": 20, "jitter_ms": 5, "loss": 0.5, "block": true}, "*": {}}'
    assert rules_from(content) == {
        "a>b": LinkRule(delay_ms=20, jitter_ms=5, loss=0.5, block=True),
        "*": CLEAR,
    }


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"a>b": 1}',
        b'{"a>b": {"loss": 1.1}}',
        b'{"a>b": {"loss": -0.1}}',
        b'{"a>b": {"delay_ms": -1}}',
        b'{"a>b": {"delay_ms": 600001}}',
        b'{"a>b": {"lost": 0.1}}',
    ],
)
def test_what_is_no_rule_is_refused(content: bytes) -> None:
    with pytest.raises(RuleError, match="rules: "):
        rules_from(content)


@pytest.mark.parametrize("link", ["a", "a>", ">b", "a>c", "c>*", "**", "a>b>c", ""])
def test_a_rule_for_a_link_that_does_not_exist_is_refused(link: str) -> None:
    with pytest.raises(RuleError, match="is no link"):
        check({link: CLEAR}, frozenset({"a", "b"}))


@pytest.mark.parametrize("link", ["a>b", "b>a", "a>*", "*>b", "*>*", "*"])
def test_a_rule_for_a_link_that_exists_is_taken(link: str) -> None:
    check({link: CLEAR}, frozenset({"a", "b"}))
