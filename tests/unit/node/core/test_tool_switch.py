"""The switch by which a request asks for tools on this node's side."""

import pytest

from smg_node.core.tool_switch import is_switched_on


@pytest.mark.parametrize(
    ("headers", "on"),
    [
        ({}, False),
        ({"x-smg-mcp": "enabled"}, True),
        ({"x-smg-mcp": " Enabled "}, True),
        ({"x-smg-mcp": "off"}, False),
        ({"x-smg-mcp": ""}, False),
        ({"x-smg": "enabled"}, False),
    ],
)
def test_one_word_switches_it_on(headers: dict[str, str], *, on: bool) -> None:
    assert is_switched_on(headers) is on
