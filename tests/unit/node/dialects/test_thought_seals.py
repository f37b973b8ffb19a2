"""Thought seals: what a client carries for a tenant and a model opens for them only."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.dialects.thought_seals import CARRIED_MAX_BYTES, LEFT_OUT, PlainVault, ThoughtSeals

SEALS = ThoughtSeals(PlainVault())


@given(st.text())
def test_a_thought_is_carried_whole(thought: str) -> None:
    signature = SEALS.seal(thought, tenant="acme", model="m")
    assert signature.isascii()
    whole = thought.encode("utf-8", "replace").decode()
    assert SEALS.opened(signature, tenant="acme", model="m") == whole


def test_nobody_else_opens_it() -> None:
    signature = SEALS.seal("secret", tenant="acme", model="m")
    assert SEALS.opened(signature, tenant="other", model="m") is None
    assert SEALS.opened(signature, tenant="acme", model="n") is None


@given(st.text() | st.binary().map(lambda raw: "smg1s." + base64.b64encode(raw).decode()))
def test_anything_else_carries_nothing(signature: str) -> None:
    assert SEALS.opened(signature, tenant="acme", model="m") is None


@pytest.mark.parametrize("character", ["a", "é", "😀"])
def test_the_middle_of_a_very_long_thought_is_left_out(character: str) -> None:
    thought = f"begin {character * CARRIED_MAX_BYTES} end"
    signature = SEALS.seal(thought, tenant="acme", model="m")
    carried = SEALS.opened(signature, tenant="acme", model="m")
    assert carried is not None
    head, _, tail = carried.partition(LEFT_OUT)
    assert thought.startswith(head)
    assert thought.endswith(tail)
    assert CARRIED_MAX_BYTES - 16 < len(carried.encode()) <= CARRIED_MAX_BYTES


def test_a_signature_of_a_shown_thought_tells_who_was_shown_what() -> None:
    one = SEALS.sign("why", tenant="acme", model="m")
    assert one == SEALS.sign("why", tenant="acme", model="m")
    others = [("why?", "acme", "m"), ("why", "acm", "em"), ("why", "acme", "n")]
    assert one not in [SEALS.sign(t, tenant=tenant, model=m) for t, tenant, m in others]
    assert SEALS.opened(one, tenant="acme", model="m") is None
