"""LongCat calls: a JSON object between tags of its own.

<longcat_tool_call>⏎{"name": "get_tide", "arguments": {"port": "Brest"}}⏎</longcat_tool_call>
"""

from typing import Final

from smg_node.parsers.notations.json_wrapped import Wrapped

FORMATS: Final = (Wrapped(("<longcat_tool_call>",), ("</longcat_tool_call>",)).form("longcat"),)
