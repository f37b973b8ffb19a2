"""Arguments: what a model sees and writes, and what the server gets."""

import msgspec
import pytest

from smg_node.mcp.catalog.arguments import canonical_arguments, server_arguments, shown_schema
from smg_node.mcp.server_spec import ToolRule

RULE = ToolRule(rename={"place": "city"}, defaults={"unit": "C"}, fixed={"key": "k"})
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "unit": {"type": "string"},
        "key": {"type": "string"},
    },
    "required": ["city", "unit", "key"],
}


def test_a_schema_is_shown_renamed_and_without_what_is_fixed() -> None:
    shown = shown_schema(SCHEMA, RULE)
    assert shown["properties"] == {"place": {"type": "string"}, "unit": {"type": "string"}}
    assert shown["required"] == ["place"]
    assert shown_schema(SCHEMA, ToolRule()) is SCHEMA


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ('{"place":"Bonn"}', {"unit": "C", "city": "Bonn", "key": "k"}),
        ('{"place":"Bonn","unit":"F"}', {"unit": "F", "city": "Bonn", "key": "k"}),
        ('{"key":"other"}', {"unit": "C", "key": "k"}),
        ("", {"unit": "C", "key": "k"}),
    ],
)
def test_a_server_gets_its_own_names_and_what_is_fixed(written: str, sent: object) -> None:
    assert msgspec.json.decode(server_arguments(written, RULE)) == sent


def test_values_stay_the_text_that_the_model_wrote() -> None:
    written = '{"place": 12345678901234567890123, "x": 1.10}'
    sent = server_arguments(written, RULE)
    assert "12345678901234567890123" in sent
    assert "1.10" in sent
    assert server_arguments(written, ToolRule()) is written


@pytest.mark.parametrize("written", ["[1]", '{"a":', "nonsense", '{"a":"\ud800"}'])
def test_what_is_no_object_is_left_to_the_call(written: str) -> None:
    assert server_arguments(written, RULE) == written


def test_arguments_of_the_same_meaning_share_a_text() -> None:
    assert canonical_arguments('{"a": 1, "b": {"d":2,"c":3}}') == canonical_arguments(
        '{"b":{"c":3,"d":2},"a":1}'
    )
    assert canonical_arguments("") == canonical_arguments("{}")
    assert canonical_arguments('{"a":1}') != canonical_arguments('{"a":2}')
    assert canonical_arguments('{"a":') == '{"a":'
    assert canonical_arguments("\ud800") == "\ufffd"
