import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from smg_mesh.io.security.carried_secrets import CarriedSecrets
from smg_node.dialects.thought_seals import PlainVault
from smg_node.mcp.serving.call_state import (
    APPROVAL,
    GOOD_MS,
    CallState,
    approval_answer,
    approval_request,
    binding_of,
    can_be_asked,
    opened,
    sealed,
)

VAULT = PlainVault()
KEYED = CarriedSecrets(lambda: (bytes(range(4 + 32)),))
BINDING = binding_of(tenant="t", key_id="k", server="s", tool="x", arguments={"a": 1, "b": [2]})


@given(st.booleans(), st.none() | st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_a_state_comes_back_as_it_was(approved: bool, server_state: str | None) -> None:
    state = CallState(approved, server_state)
    assert opened(VAULT, sealed(VAULT, state, BINDING, now_ms=5), BINDING, now_ms=5) == state


@pytest.mark.parametrize("field", ["tenant", "key_id", "server", "tool", "arguments"])
def test_a_state_is_of_no_use_for_another_call_or_caller(field: str) -> None:
    text = sealed(VAULT, CallState(), BINDING, now_ms=0)
    assert opened(VAULT, text, replace(BINDING, **{field: "other"}), now_ms=0) is None


def test_a_state_ends() -> None:
    text = sealed(VAULT, CallState(), BINDING, now_ms=7)
    assert opened(VAULT, text, BINDING, now_ms=7 + GOOD_MS - 1) == CallState()
    assert opened(VAULT, text, BINDING, now_ms=7 + GOOD_MS) is None


def test_arguments_are_bound_by_what_they_mean() -> None:
    same = binding_of(tenant="t", key_id="k", server="s", tool="x", arguments={"b": [2], "a": 1})
    assert same == BINDING


@given(st.text(max_size=30) | st.text(max_size=30).map(lambda text: "smgc1." + text))
def test_any_text_is_a_state_or_none(text: str) -> None:
    assert opened(VAULT, text, BINDING, now_ms=0) is None


@given(st.data())
def test_a_changed_state_is_none_of_ours(data: st.DataObject) -> None:
    text = sealed(KEYED, CallState(approved=True), BINDING, now_ms=0)
    place = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.sampled_from("AZaz09-_.="))
    changed = text[:place] + letter + text[place + 1 :]
    same = CallState(approved=True) if changed == text else None
    assert opened(KEYED, changed, BINDING, now_ms=0) == same
    assert opened(KEYED, text + letter, BINDING, now_ms=0) is None


def test_a_state_says_nothing_to_who_carries_it() -> None:
    text = sealed(KEYED, CallState(server_state="secret of the server"), BINDING, now_ms=0)
    assert b"secret" not in base64.urlsafe_b64decode(text.removeprefix("smgc1.") + "===")


@pytest.mark.parametrize(
    ("responses", "answer"),
    [
        ({}, None),
        ({APPROVAL: {"action": "accept"}}, True),
        ({APPROVAL: {"action": "decline"}}, False),
        ({APPROVAL: {"action": "cancel"}}, False),
        ({APPROVAL: {"action": True}}, None),
        ({APPROVAL: "accept"}, None),
        ({"other": {"action": "accept"}}, None),
    ],
)
def test_answers_of_a_person(responses: dict[str, Any], answer: bool | None) -> None:
    assert approval_answer(responses) is answer


@pytest.mark.parametrize(
    ("capabilities", "can"),
    [
        ({}, False),
        ({"elicitation": {}}, True),
        ({"elicitation": {"form": {}}}, True),
        ({"elicitation": {"url": {}}}, False),
        ({"elicitation": None}, False),
        ({"sampling": {}}, False),
    ],
)
def test_clients_that_can_ask_a_person(capabilities: dict[str, Any], can: bool) -> None:
    assert can_be_asked(capabilities) is can


def test_the_question_is_short_and_plain() -> None:
    message = approval_request("files", "delete", "\x1b[2K\u202e" + "x" * 9000)["params"]["message"]
    assert len(message) < 600
    assert message.isprintable()


def test_the_question_names_the_call_and_has_no_fields() -> None:
    params = approval_request("files", "delete", '{"path": "a"}')["params"]
    assert params["message"] == 'Allow files to run delete with {"path": "a"}?'
    assert params["requestedSchema"] == {"type": "object", "properties": {}}
