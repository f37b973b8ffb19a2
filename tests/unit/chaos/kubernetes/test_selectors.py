"""Label selectors."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.kubernetes.selectors import matches, parse_selector

LABELS = {"app": "vllm", "tier": "chat", "example.com/x": ""}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("app=vllm", True),
        ("app==vllm,tier=chat", True),
        ("app = vllm , tier != chat", False),
        ("none!=x", True),
        ("tier in (chat, code)", True),
        ("tier notin (chat)", False),
        ("none notin (chat)", True),
        ("none in (chat)", False),
        ("app,!canary", True),
        ("!app", False),
        ("example.com/x", True),
        ("example.com/x=", True),
        ("app in ()", False),
    ],
)
def test_a_selector_matches_as_kubernetes_says(text: str, *, expected: bool) -> None:
    assert matches(parse_selector(text), LABELS) is expected


@pytest.mark.parametrize("text", ["app=vllm,", ",", "=x", "app in vllm)", "app=a b", "!", "a=b,,c"])
def test_what_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_selector(text)


@given(st.text(max_size=30))
def test_any_text_is_a_selector_or_refused(text: str) -> None:
    with suppress(ValueError):
        requirements = parse_selector(text)
        assert bool(requirements) == bool(text.strip())
