from typing import Any

import pytest

from smg_node.config.schema.plain_yaml import read_plain


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{to: a/b, on: [rate, full]}", {"to": "a/b", "on": ["rate", "full"]}),
        ("api_version: 2024-10-21", {"api_version": "2024-10-21"}),
        ("{a: yes, b: no, c: off, d: On}", {"a": "yes", "b": "no", "c": "off", "d": "On"}),
        ("{a: true, b: False, c: TRUE}", {"a": True, "b": False, "c": True}),
        ("{a: 1, b: 2.5, c: null, d: ~}", {"a": 1, "b": 2.5, "c": None, "d": None}),
        ("", None),
        ('{"a": ["b"]}', {"a": ["b"]}),
    ],
)
def test_words_are_words(text: str, value: Any) -> None:
    assert read_plain(text) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "it is not YAML"),
        ("a: &x 1\nb: *x", "anchors are not understood"),
        ("a: !!python/object:os.system {}", "it is not YAML"),
        ("[" * 5_000 + "]" * 5_000, "nested too deeply"),
    ],
)
def test_what_is_none_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_plain(text)
