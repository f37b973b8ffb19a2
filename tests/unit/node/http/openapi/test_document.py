"""The OpenAPI document says what its readers accept: scopes of limits, and definitions of servers of tools."""

import re
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.state.limits.limit_scope import read_scope
from smg_node.core.generation.tool_owner import ToolShape
from smg_node.http.openapi.document import document
from smg_node.http.route_table import ROUTES
from smg_node.mcp.spec_parser import BUILTINS

DOCUMENT: dict[str, Any] = document(ROUTES, version="1")
(PATTERN,) = {
    parameter["schema"]["pattern"]
    for actions in DOCUMENT["paths"].values()
    for action in actions.values()
    for parameter in action.get("parameters", ())
    if parameter["name"] == "scope" and parameter["in"] == "path"
}


@pytest.mark.parametrize(
    "scope",
    [
        "global",
        "tenant=acme",
        "key=*",
        "tenant=acme,model=org/model",
        "tenant=a,key=b,model=c",
        "provider=openai-a",
        "tool=docs/find",
        "tool=docs/*",
        "tool=*",
        "tenant=*,tool=search/*",
        "tenant=a,key=b,tool=docs/find",
    ],
)
def test_scopes_of_limits_are_of_their_pattern(scope: str) -> None:
    read_scope(scope)
    assert re.search(PATTERN, scope)


@given(st.from_regex(re.compile(PATTERN, re.ASCII), fullmatch=True))
def test_whatever_is_of_the_pattern_is_a_scope(scope: str) -> None:
    read_scope(scope.removesuffix("\n"))


@pytest.mark.parametrize("scope", ["", "tool=docs", "tool=/x", "tool=*/x", "provider=a,tool=b/c"])
def test_what_is_no_scope_is_not_of_the_pattern(scope: str) -> None:
    assert not re.search(PATTERN, scope)


def test_definitions_of_servers_have_every_shape_and_built_in_tool() -> None:
    fields = DOCUMENT["components"]["schemas"]["ToolServerRequest"]["properties"]
    rule = fields["tools"]["additionalProperties"]["properties"]
    assert set(rule["shape"]["enum"]) == set(get_args(ToolShape))
    assert set(fields["builtin"]["properties"]) == set(BUILTINS)
