"""Cofl calls: elements `<cofl:…>` that state the types of their values.

    <cofl:tool_calls><cofl:tool_call id="0" name="find_museum"><cofl:value name="max" type="json">3</cofl:value></cofl:tool_call></cofl:tool_calls>

The ids count calls within one answer and are not handed on. The type is believed before the schema. All of it
may stand in an action, whose tokens mean nothing more.
"""

from typing import Final

from smg_node.parsers.notations.key_value_pairs import type_named
from smg_node.parsers.notations.schema_types import JSON, Types, not_string
from smg_node.parsers.notations.xml_elements import Attributes, Elements
from smg_node.parsers.reading.format import Tag, ToolFormat

_ACTION: Final = "<|START_ACTION|>"
_ACTION_END: Final = "<|END_ACTION|>"


def _types(attributes: Attributes, declared: Types) -> Types:
    stated = type_named(attributes.get("type", ""))
    if stated is None:
        return declared
    return not_string(declared) if stated == JSON else stated


_ELEMENTS: Final = Elements(
    call=("<cofl:tool_call ",),
    call_ends=("</cofl:tool_call>",),
    parameter=("<cofl:value ",),
    parameter_ends=("</cofl:value>",),
    wrappers=("<cofl:tool_calls>",),
    wrapper_ends=("</cofl:tool_calls>",),
    types=_types,
)

FORMATS: Final = (
    ToolFormat(
        "cofl",
        _ELEMENTS.read,
        openers=(*_ELEMENTS.wrappers, *_ELEMENTS.call),
        noise=(_ACTION, _ACTION_END),
        tags=(
            Tag(
                f'{_ACTION}<cofl:tool_calls><cofl:tool_call id="0" name="NAME">',
                f"</cofl:tool_call></cofl:tool_calls>{_ACTION_END}",
                (_ACTION,),
                "cohere_xml",
            ),
        ),
    ),
)
