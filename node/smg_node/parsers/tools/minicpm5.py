"""MiniCPM5 (minicpm5) calls: elements without a wrapper, their values in CDATA sections where they
need it.

<function name="find_museum"><param name="city"><![CDATA[Ghent & co]]></param></function>
"""

from typing import Final

from smg_node.parsers.notations.xml_elements import Elements
from smg_node.parsers.reading.format import ToolFormat

_ELEMENTS: Final = Elements(
    call=("<function ",),
    call_ends=("</function>",),
    parameter=("<param ",),
    parameter_ends=("</param>",),
    cdata=("<![CDATA[", "]]>"),
)

FORMATS: Final = (ToolFormat("minicpm5", _ELEMENTS.read, openers=_ELEMENTS.call),)
