"""A split's sides follow from route, name and key alone: the same everywhere, in their shares, until its end."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.providers.routes.route_ways import Split
from smg_node.providers.routes.split_rule import SplitRule, rule_of, split_label

KEYS = [f"tenant-{at}" for at in range(10_000)]


def inside(rule: SplitRule, route: str = "claude", now_ms: int = 0) -> set[str]:
    return {key for key in KEYS if rule.side(route, key, now_ms) == "in"}


@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.5, 0.9, 1.0])
def test_a_share_of_the_keys_is_in(share: float) -> None:
    assert abs(len(inside(SplitRule("eu", share, "tenant"))) / len(KEYS) - share) <= 0.01


def test_none_and_all_are_exact() -> None:
    assert inside(SplitRule("eu", 0.0, "tenant")) == set()
    assert inside(SplitRule("eu", 1.0, "tenant")) == set(KEYS)


def test_a_larger_share_keeps_who_was_in() -> None:
    small, large = (SplitRule("eu", share, "tenant") for share in (0.1, 0.3))
    assert inside(small) < inside(large)


def test_other_routes_and_other_splits_draw_anew() -> None:
    own = inside(SplitRule("eu", 0.5, "tenant"))
    for other in (
        inside(SplitRule("us", 0.5, "tenant")),
        inside(SplitRule("eu", 0.5, "tenant"), "gpt"),
    ):
        assert 0.4 < len(own & other) / len(own) < 0.6


def test_it_ends_at_its_moment() -> None:
    rule = SplitRule("eu", 1.0, "tenant", until_ms=1000)
    assert [rule.side("r", "k", now_ms) for now_ms in (0, 999, 1000, 2000)] == ["in", "in", "", ""]


@given(
    share=st.floats(0, 1),
    key=st.sampled_from(("tenant", "key", "user", "conversation")),
    until=st.sampled_from(("", "2026-12-31", "2026-12-31T18:00:00Z")),
    name=st.from_regex(r"[a-z0-9][a-z0-9._-]{0,8}", fullmatch=True),
)
def test_a_label_says_what_was_written(share: float, key: str, until: str, name: str) -> None:
    split = Split("a", share, key, until, name)
    assert rule_of(split_label(split)) == SplitRule(name, share, key, split.until_ms)


@pytest.mark.parametrize("label", ["", "eu", "eu much tenant", "eu 0.1 tenant soon"])
def test_a_label_of_somebody_else_is_no_rule(label: str) -> None:
    assert rule_of(label) is None


def test_every_process_says_the_same() -> None:
    program = (
        "from smg_node.providers.routes.split_rule import SplitRule\n"
        "rule = SplitRule('eu', 0.3, 'tenant')\n"
        "print(''.join(rule.side('claude', f'tenant-{at}', 0)[0] for at in range(500)))\n"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            check=True,
            text=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    }
    rule = SplitRule("eu", 0.3, "tenant")
    own = "".join(rule.side("claude", key, 0)[:1] for key in KEYS[:500])
    assert said == {f"{own}\n"}


def test_a_key_that_was_in_stays_in_with_later_releases() -> None:
    """These sides are part of what nodes of different releases agree on: never change them."""
    rule = SplitRule("eu", 0.5, "tenant")
    assert "".join(rule.side("claude", key, 0)[:1] for key in KEYS[:16]) == "oiioioiooiiooooo"
