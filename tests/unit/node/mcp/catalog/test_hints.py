"""Hints: what is believed of a tool, and by whose word."""

from typing import Any

import pytest

from smg_node.core.generation.tool_serving import ToolFilter
from smg_node.mcp.catalog.hints import Hints, fits, hints_of
from smg_node.mcp.definition import ServerDefinition
from smg_node.mcp.server_spec import ServerSpec, ToolRule

ALL = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
NOTHING = Hints()


def spec(**fields: Any) -> ServerSpec:
    return ServerSpec(ServerDefinition("s", url="http://s.test"), **fields)


@pytest.mark.parametrize("trust", ["standard", "untrusted", "sandboxed"])
def test_a_servers_own_word_counts_only_where_it_is_trusted(trust: Any) -> None:
    assert hints_of(spec(trust=trust), "t", ALL) == NOTHING
    assert hints_of(spec(trust="trusted"), "t", ALL) == Hints(True, True, True)


@pytest.mark.parametrize(
    "said", [{"readOnlyHint": "yes"}, {"readOnlyHint": 1}, {"openWorldHint": 0}]
)
def test_a_hint_is_a_boolean(said: dict[str, Any]) -> None:
    assert hints_of(spec(trust="trusted"), "t", said) == NOTHING


def test_an_operators_word_replaces_a_hint() -> None:
    rules = {"t": ToolRule(read_only=False, idempotent=True)}
    assert hints_of(spec(trust="trusted", tools=rules), "t", ALL) == Hints(False, True, True)
    rules = {"t": ToolRule(read_only=True)}
    assert hints_of(spec(trust="sandboxed", tools=rules), "t", ALL) == Hints(True, False, True)


def test_a_filter_of_names_and_hints_wants_both() -> None:
    assert fits(ToolFilter(), "t", NOTHING)
    assert fits(ToolFilter(("t",), read_only=False), "t", NOTHING)
    assert not fits(ToolFilter(("t",), read_only=True), "t", NOTHING)
    assert not fits(ToolFilter(()), "t", NOTHING)
