"""Call arguments as they come back in a history, and the objects that they are read as."""

import math
from typing import Any

import pytest

from smg_node.core.generation.call_arguments import read_arguments, without_halves


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        ("  ", {}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"n": 9007199254740993}', {"n": 9007199254740993}),
        ('{"n": 1180591620717411303424}', {"n": 2**70}),
        ('{"a": "\\ud800"}', {"a": "\ufffd"}),
        ('{"a": "\\udc00 \\ud83d\\ude00"}', {"a": "\ufffd 😀"}),
        ('{"\\ud800": ["\\ud800", {"b": "\\udfff"}]}', {"\ufffd": ["\ufffd", {"b": "\ufffd"}]}),
        ('{"a": "\ud800"}', {"a": "\ufffd"}),
        ('{"a": [Infinity, -Infinity, 1e999]}', {"a": [math.inf, -math.inf, math.inf]}),
        ('{"a": "x\n\ty"}', {"a": "x\n\ty"}),
        ('{"a":', None),
        ('{"a": "cut', None),
        ('{"a": 1}}', None),
        ("[1]", None),
        ("null", None),
        ("NaN", None),
        ('"text"', None),
        ("[" * 5000, None),
        ('{"a":' * 5000, None),
        ('{"n": ' + "1" * 5000 + "}", None),
        ("\ud800", None),
    ],
)
def test_arguments_are_an_object_or_nothing(text: str, expected: Any) -> None:
    assert read_arguments(text) == expected


def test_nan_is_read_as_the_number_it_is() -> None:
    found = read_arguments('{"a": NaN, "b": 2}')
    assert found is not None
    assert math.isnan(found["a"])
    assert found["b"] == 2


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("", ""),
        ("é 😀", "é 😀"),
        ("\ud800", "\ufffd"),
        ("a\udc00b\ud83d", "a\ufffdb\ufffd"),
        ("\ud83d\ude00", "😀"),
    ],
)
def test_halves_of_surrogate_pairs_are_replaced(text: str, whole: str) -> None:
    assert without_halves(text) == whole
