"""Schemas of several functions under one root: what points where, and what it is called there."""

from typing import Any

import jsonschema_rs
import pytest

from smg_node.parsers.constraints.schema_bundle import array_of_calls, gathered

PLACE = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SPOT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


def at(definition: Any, name: str = "place", where: str = "$defs") -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"at": {"$ref": f"#/{where}/{name}"}},
        "required": ["at"],
        where: {name: definition},
    }


def valid(schema: Any, value: Any) -> bool:
    return jsonschema_rs.validator_for(schema).is_valid(value)


def call(name: str, **parameters: Any) -> dict[str, Any]:
    return {"name": name, "parameters": parameters}


def test_plain_schemas_stay_as_they_are() -> None:
    found, definitions = gathered({"f": PLACE, "g": {}})
    assert found == {"f": PLACE, "g": {}}
    assert definitions == {}


def test_definitions_move_to_the_root_and_equal_ones_are_shared() -> None:
    found, definitions = gathered({"f": at(PLACE), "g": at(PLACE, where="definitions")})
    assert definitions == {"place": PLACE}
    for schema in found.values():
        assert schema["properties"]["at"] == {"$ref": "#/$defs/place"}
        assert not {"$defs", "definitions"} & set(schema)


def test_definitions_of_one_name_that_differ_are_renamed() -> None:
    schema = array_of_calls({"f": at(PLACE), "g": at(SPOT)})
    assert schema["$defs"] == {"place": PLACE, "place_2": SPOT}
    assert valid(schema, [call("f", at={"city": "Ghent"}), call("g", at={"x": 1})])
    assert not valid(schema, [call("g", at={"city": "Ghent"})])
    assert not valid(schema, [call("f", at={"x": 1})])


def test_what_points_to_a_renamed_definition_is_renamed_too() -> None:
    def nested(inner: Any) -> dict[str, Any]:
        schema = at({"$ref": "#/$defs/inner"})
        schema["$defs"]["inner"] = inner
        return schema

    schema = array_of_calls({"f": nested(PLACE), "g": nested(SPOT), "h": nested(PLACE)})
    assert set(schema["$defs"]) == {"place", "inner", "place_2", "inner_2"}
    assert valid(
        schema, [call("f", at={"city": "A"}), call("g", at={"x": 1}), call("h", at={"city": "B"})]
    )
    assert not valid(schema, [call("h", at={"x": 1})])
    assert not valid(schema, [call("g", at={"city": "A"})])


@pytest.mark.parametrize(
    "tree",
    [
        {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False},
        {
            "type": "object",
            "properties": {"next": {"$ref": "#/$defs/node"}},
            "additionalProperties": False,
            "$defs": {
                "node": {
                    "type": "object",
                    "properties": {"next": {"$ref": "#/$defs/node"}},
                    "additionalProperties": False,
                }
            },
        },
        {
            "type": "object",
            "properties": {
                "next": {"$ref": "#/properties/other"},
                "other": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"next": {"type": "object"}},
                },
            },
        },
    ],
)
def test_a_schema_that_points_to_itself_still_does(tree: Any) -> None:
    schema = array_of_calls({"f": tree, "g": PLACE})
    assert valid(schema, [call("f", next={"next": {}})])
    assert not valid(schema, [call("f", next={"next": 1})])
    assert valid(schema, [call("g", city="x")])


def test_strange_names_of_definitions_are_found() -> None:
    name = "a/b~c%d"
    schema = at(PLACE, name="a~1b~0c%25d")
    schema["$defs"] = {name: PLACE}
    found = array_of_calls({"f": schema, "g": {**schema, "$defs": {name: SPOT}}})
    assert valid(found, [call("f", at={"city": "x"}), call("g", at={"x": 1})])
    assert not valid(found, [call("g", at={"city": "x"})])


def test_data_that_look_like_pointers_are_left_alone() -> None:
    data = {"const": {"$ref": "#/nowhere"}}
    found, definitions = gathered({"f": {"type": "object", "properties": {"a": data}}})
    assert (found["f"]["properties"]["a"], definitions) == (data, {})


def test_how_many_calls_there_are_and_of_what() -> None:
    two = [call("f", city="A"), call("g", x=1)]
    several = array_of_calls({"f": PLACE, "g": SPOT})
    assert valid(several, two)
    assert valid(several, two[:1])
    assert not valid(several, [])
    assert not valid(several, [call("h")])
    assert not valid(several, [{**two[0], "more": 1}])
    assert not valid(array_of_calls({"f": PLACE, "g": SPOT}, parallel=False), two)
