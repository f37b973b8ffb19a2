"""The cursor: typed reading, paths, and every problem told at once."""

from collections.abc import Callable
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.json_cursor import PROBLEMS_MAX, Cursor, Problems, kind_of, quoted


def refusal(body: dict[str, Any], read: Callable[[Cursor], Any]) -> SmgError:
    cursor = Cursor(body, Problems())
    assert read(cursor) is None
    with pytest.raises(SmgError) as caught:
        cursor.problems.check()
    return caught.value


def good(body: dict[str, Any], read: Callable[[Cursor], Any]) -> Any:
    cursor = Cursor(body, Problems())
    value = read(cursor)
    cursor.problems.check()
    return value


GETTERS: list[tuple[Callable[[Cursor], Any], Any, Any]] = [
    (lambda c: c.text("a"), "", ""),
    (lambda c: c.text("a", characters_min=1, characters_max=2), "xy", "xy"),
    (lambda c: c.word("a", ("x", "y")), "y", "y"),
    (lambda c: c.flag("a"), False, False),
    (lambda c: c.integer("a", low=0), 0, 0),
    (lambda c: c.integer("a", low=-1, high=1), 1, 1),
    (lambda c: c.integer("a", low=0), 10.0, 10),
    (lambda c: c.integer("a", low=0), 1e3, 1000),
    (lambda c: c.integer("a", low=0), 10**40, 10**40),
    (lambda c: c.number("a", low=0, high=2), 2, 2.0),
    (lambda c: c.number("a", low=0, high=2), 0.5, 0.5),
    (lambda c: c.array("a", at_least=1, at_most=1), [None], [None]),
]


@pytest.mark.parametrize(("read", "value", "expected"), GETTERS)
def test_a_good_value_is_returned(read: Callable[[Cursor], Any], value: Any, expected: Any) -> None:
    found = good({"a": value}, read)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(("read", "value", "expected"), GETTERS)
def test_null_and_absence_are_the_same(
    read: Callable[[Cursor], Any], value: Any, expected: Any
) -> None:
    assert good({"a": None}, read) is None
    assert good({}, read) is None


@pytest.mark.parametrize(
    ("read", "value", "message"),
    [
        (lambda c: c.text("a"), 1, "must be a string, not an integer"),
        (lambda c: c.word("a", ("x",)), [], "must be a string, not an array"),
        (lambda c: c.flag("a"), 0, "must be a boolean, not an integer"),
        (lambda c: c.flag("a"), "true", "must be a boolean, not a string"),
        (lambda c: c.integer("a", low=0), True, "must be an integer, not a boolean"),
        (lambda c: c.integer("a", low=0), 5.5, "must be an integer, not a number with a fraction"),
        (lambda c: c.integer("a", low=0), "5", "must be an integer, not a string"),
        (lambda c: c.number("a", low=0, high=1), True, "must be a number, not a boolean"),
        (lambda c: c.object("a"), [], "must be an object, not an array"),
        (lambda c: c.array("a"), {}, "must be an array, not an object"),
    ],
)
def test_a_wrong_type_is_told_apart(
    read: Callable[[Cursor], Any], value: Any, message: str
) -> None:
    error = refusal({"a": value}, read)
    assert (error.message, error.where, error.code) == (f"a: {message}", "a", "invalid_type")


@pytest.mark.parametrize(
    ("read", "value", "message"),
    [
        (lambda c: c.text("a", characters_min=1), "", "must not be empty"),
        (lambda c: c.text("a", characters_min=2), "x", "is too short"),
        (lambda c: c.text("a", characters_max=2), "xyz", "must have at most 2 characters, has 3"),
        (lambda c: c.word("a", ("x", "y")), "z", "must be one of 'x', 'y'; got 'z'"),
        (lambda c: c.integer("a", low=1), 0, "must be at least 1; got 0"),
        (lambda c: c.integer("a", low=1, high=2), 3, "must be between 1 and 2; got 3"),
        (
            lambda c: c.integer("a", low=1, high=2),
            10**400,
            "must be between 1 and 2; got a number out of all proportion",
        ),
        (lambda c: c.number("a", low=0, high=2), -0.1, "must be between 0 and 2; got -0.1"),
        (
            lambda c: c.number("a", low=0, high=1, low_excluded=True),
            0,
            "must be above 0 and at most 1; got 0",
        ),
        (
            lambda c: c.number("a", low=0, high=1),
            float("nan"),
            "must be between 0 and 1; got a number out of all proportion",
        ),
        (
            lambda c: c.number("a", low=0, high=1),
            float("inf"),
            "must be between 0 and 1; got a number out of all proportion",
        ),
        (lambda c: c.array("a", at_least=2), [1], "must have at least 2 elements"),
        (lambda c: c.array("a", at_most=1), [1, 2], "must have at most 1 elements, has 2"),
    ],
)
def test_a_value_out_of_range_is_told_with_its_range(
    read: Callable[[Cursor], Any], value: Any, message: str
) -> None:
    error = refusal({"a": value}, read)
    assert (error.message, error.where, error.code) == (f"a: {message}", "a", "invalid_value")


@pytest.mark.parametrize(
    "read",
    [
        lambda c: c.raw("a", required=True),
        lambda c: c.text("a", required=True),
        lambda c: c.word("a", ("x",), required=True),
        lambda c: c.integer("a", low=0, required=True),
        lambda c: c.object("a", required=True),
        lambda c: c.array("a", required=True),
    ],
)
def test_what_is_required_must_be_there(read: Callable[[Cursor], Any]) -> None:
    absent, null = refusal({}, read), refusal({"a": None}, read)
    assert absent.code == null.code == "missing_required_parameter"
    assert (absent.message, null.message) == ("a: is required", "a: must not be null")


def test_paths_lead_through_objects_and_arrays() -> None:
    body = {"messages": [{}, {}, {"content": [{"image_url": {"url": 1}}]}]}
    cursor = Cursor(body, Problems())
    *_, message = cursor.objects("messages")
    (part,) = message.objects("content")
    place = part.object("image_url")
    assert place is not None
    assert place.path() == "messages[2].content[0].image_url"
    place.text("url")
    with pytest.raises(SmgError) as caught:
        cursor.problems.check()
    assert caught.value.where == "messages[2].content[0].image_url.url"


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("plain_key-1", "a.plain_key-1"),
        ("two words", "a['two words']"),
        ("", "a"),
        ("x.y", "a['x.y']"),
        ("new\nline", "a['new\\nline']"),
        ("k" * 100, f"a['{'k' * 63}…']"),
    ],
)
def test_odd_keys_are_quoted_in_paths(key: str, path: str) -> None:
    cursor = Cursor({"a": {}}, Problems()).object("a")
    assert cursor is not None
    assert cursor.path(key) == path


def test_elements_that_are_no_objects_are_noted_and_left_out() -> None:
    cursor = Cursor({"a": [{}, 1, {}, None]}, Problems())
    assert [element.path() for element in cursor.objects("a")] == ["a[0]", "a[2]"]
    assert len(cursor.problems) == 2


def test_elements_are_all_of_one_kind() -> None:
    cursor = Cursor({}, Problems())
    assert cursor.elements("a", int, "an integer", [1, 2.0]) == [1, 2]
    assert cursor.elements("a", int, "an integer", [1, True]) is None
    with pytest.raises(SmgError, match=r"a\[1\]: must be an integer, not a boolean"):
        cursor.problems.check()


def test_several_problems_come_in_one_error_and_the_first_names_the_place() -> None:
    cursor = Cursor({"a": 1, "b": 2}, Problems())
    cursor.text("a")
    cursor.unsupported("b", "is not supported")
    cursor.problem("", "is wrong as a whole")
    with pytest.raises(SmgError) as caught:
        cursor.problems.check()
    error = caught.value
    assert (error.where, error.code, error.status) == ("a", "invalid_type", 400)
    assert error.message == (
        "3 problems: a: must be a string, not an integer; b: is not supported; "
        "body: is wrong as a whole"
    )


def test_a_problem_of_the_body_itself_has_no_path() -> None:
    problems = Problems()
    problems.add("", "is wrong")
    with pytest.raises(SmgError) as caught:
        problems.check()
    assert (caught.value.where, caught.value.message) == (None, "is wrong")


def test_the_tenth_problem_ends_the_reading() -> None:
    problems = Problems()
    for index in range(PROBLEMS_MAX - 1):
        problems.add(f"a[{index}]", "is wrong")
    with pytest.raises(SmgError, match="10 or more problems") as caught:
        problems.add("a[9]", "is wrong")
    assert caught.value.where == "a[0]"


def test_an_unknown_name_is_told_with_the_nearest_known_one() -> None:
    cursor = Cursor({}, Problems())
    cursor.unknown("temprature", ("top_p", "temperature"))
    cursor.unknown("zzz", ("top_p", "temperature"))
    with pytest.raises(SmgError) as caught:
        cursor.problems.check()
    assert caught.value.code == "unknown_parameter"
    assert "temprature: there is no parameter of this name; did you mean 'temperature'?" in (
        caught.value.message
    )
    assert caught.value.message.endswith("zzz: there is no parameter of this name")


def test_nothing_noted_is_nothing_raised() -> None:
    Problems().check()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "null"),
        (True, "a boolean"),
        (1, "an integer"),
        (1.0, "a number"),
        (1.5, "a number with a fraction"),
        ("", "a string"),
        ([], "an array"),
        ({}, "an object"),
    ],
)
def test_json_values_have_names(value: Any, words: str) -> None:
    assert kind_of(value) == words


def test_a_client_s_words_are_cut_and_harmless() -> None:
    assert quoted("a\r\n\x1b[31m") == r"'a\r\n\x1b[31m'"
    assert len(quoted("x" * 1_000)) == 66


def test_what_stands_for_an_object_has_its_path() -> None:
    body = {"a": [{"b": 1}]}
    error = refusal(body, lambda c: next(c.objects("a")).standing_for({"b": "x"}).flag("b"))
    assert (error.where, error.code) == ("a[0].b", "invalid_type")
