"""Ids of earlier calls in the form that a family wants."""

import pytest

from smg_node.core.generation.request import ToolCall, Turn
from smg_node.prompts.call_ids import with_ids


def calls(*ids: str, name: str = "get_tide") -> Turn:
    return Turn("assistant", None, calls=tuple(ToolCall(each, name, "{}") for each in ids))


def result(answers: str) -> Turn:
    return Turn("tool", "fine", answers_call=answers)


def ids_of(family: str, *turns: Turn) -> list[list[str]]:
    """Return the ids of each turn's calls, or the id that it answers."""
    return [
        [call.call_id for call in turn.calls] if turn.calls else [turn.answers_call or ""]
        for turn in with_ids(turns, family)
    ]


_HISTORY = (
    Turn("user", "When?"),
    calls("call_1", "call_2"),
    result("call_2"),
    result("call_1"),
    Turn("assistant", "At noon."),
    calls("call_3", name="list_rooms"),
    result("call_3"),
)


@pytest.mark.parametrize(
    ("family", "first", "second", "third"),
    [
        ("kimi_k2", "functions.get_tide:0", "functions.get_tide:1", "functions.list_rooms:2"),
        ("kimi_k3", "get_tide:0", "get_tide:1", "list_rooms:0"),
        ("cohere", "0", "1", "2"),
        ("mistral", "RksXkbv4v", "dTcG4HrQi", "onxpkJzxM"),
        ("hermes", "call_1", "call_2", "call_3"),
        ("", "call_1", "call_2", "call_3"),
    ],
)
def test_a_conversation_has_the_ids_of_its_family(
    family: str, first: str, second: str, third: str
) -> None:
    assert ids_of(family, *_HISTORY) == [
        [""],
        [first, second],
        [second],
        [first],
        [""],
        [third],
        [third],
    ]


def test_a_family_that_does_not_care_leaves_the_turns_alone() -> None:
    assert with_ids(_HISTORY, "glm") is _HISTORY
    assert with_ids(_HISTORY[:1], "kimi_k2") == _HISTORY[:1]


def test_kimis_own_ids_stay_and_others_count_on_from_them() -> None:
    turns = (
        calls("functions.get_tide:4"),
        result("functions.get_tide:4"),
        calls("call_x", "functions.other:9", "functions.get_tide:²"),
    )
    assert ids_of("kimi_k2", *turns) == [
        ["functions.get_tide:4"],
        ["functions.get_tide:4"],
        ["functions.get_tide:5", "functions.get_tide:6", "functions.get_tide:7"],
    ]


def test_one_id_used_twice_is_told_apart() -> None:
    again = "functions.get_tide:0"
    turns = (calls(again), result(again), calls(again), result(again))
    second = ["functions.get_tide:1"]
    assert ids_of("kimi_k2", *turns) == [[again], [again], second, second]
    together = (calls("same", "same"), result("same"), result("same"), result("same"))
    assert ids_of("cohere", *together) == [["0", "1"], ["0"], ["1"], ["1"]]


def test_mistrals_ids_are_nine_letters_and_digits_that_depend_on_nothing_else() -> None:
    (alone,), _ = ids_of("mistral", calls("call_2"), result("call_2"))
    assert alone == "dTcG4HrQi"
    assert ids_of("mistral", calls("abcde1234")) == [["abcde1234"]]
    for odd in ("abcde123é", "abcde-123", "abcdefghij", "x" * 256, "", "\ud800"):
        [[made]] = ids_of("mistral", calls(odd))
        assert len(made) == 9
        assert made.isascii()
        assert made.isalnum()
    [unnamed] = ids_of("mistral", calls("", ""))
    assert len(set(unnamed)) == 2


def test_the_result_of_no_known_call_keeps_its_id() -> None:
    assert ids_of("kimi_k2", calls("a"), result("b")) == [["functions.get_tide:0"], ["b"]]
