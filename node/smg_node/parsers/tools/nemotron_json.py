"""Nemotron JSON calls: one array between two tags, of Llama-Nemotron and Nemotron Nano v2.

<TOOLCALL>[{"name": "get_tide", "arguments": {"port": "Brest"}}]</TOOLCALL>
"""

from typing import Final

from smg_node.parsers.notations.json_wrapped import Wrapped

FORMATS: Final = (Wrapped(("<TOOLCALL>",), ("</TOOLCALL>",)).form("nemotron_json"),)
