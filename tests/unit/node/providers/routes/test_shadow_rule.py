"""The rule of a shadow travels as a label of its target."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.providers.routes.route_ways import Shadow
from smg_node.providers.routes.shadow_rule import ShadowRule, shadow_label, shadow_rule_of


@given(share=st.floats(0, 1), per_day=st.integers(1, 10**6), keep_text=st.booleans())
def test_a_label_says_what_was_written(share: float, per_day: int, keep_text: bool) -> None:
    label = shadow_label(Shadow("o/gpt", share, per_day, keep_text))
    assert shadow_rule_of(label) == ShadowRule(share, per_day, keep_text)


@pytest.mark.parametrize("label", ["", "much", "0.1", "0.1 many text"])
def test_a_label_of_somebody_else_is_no_rule(label: str) -> None:
    assert shadow_rule_of(label) is None
