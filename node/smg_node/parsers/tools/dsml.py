"""DSML calls: elements whose tags begin with a token of their own, as DeepSeek prints them since
V3.2.

    <｜DSML｜function_calls>⏎<｜DSML｜invoke name="find_museum">⏎<｜DSML｜parameter name="city" string="true">Ghent</｜DSML｜parameter>⏎</｜DSML｜invoke>⏎</｜DSML｜function_calls>

The wrapper is `tool_calls` in V4 and ` calls` in V4.1, where a blank stands behind the token in every tag;
another family has a token of its own. Models mix these up, leave the underscore out, call an invoke a tool, put
all arguments as one object into a parameter `arguments` or `input`, or into the invoke itself. All of it is read
whatever the model; the formats differ in how a call is spelled to an engine's grammar.

The attribute `string` says whether a value is text or JSON, and is believed before the schema.
"""

from typing import Final

from smg_node.parsers.notations.schema_types import STRING, Types, not_string
from smg_node.parsers.notations.xml_elements import Attributes, Elements
from smg_node.parsers.reading.format import Tag, ToolFormat

_TOKENS: Final = ("｜DSML｜", "｜GCML｜")
_WRAPPERS: Final = ("function_calls", "tool_calls", "toolcalls", "calls")
_CALLS: Final = ("invoke", "tool")
_PARAMETERS: Final = ("parameter",)


def _tags(before: str, names: tuple[str, ...], behind: str) -> tuple[str, ...]:
    """Return the tags of these names with every token, with and without a blank behind it."""
    return tuple(
        f"{before}{token}{blank}{name}{behind}"
        for token in _TOKENS
        for blank in ("", " ")
        for name in names
    )


def _types(attributes: Attributes, declared: Types) -> Types:
    stated = attributes.get("string", "").lower()
    if stated == "true":
        return STRING
    return not_string(declared) if stated == "false" else declared


_ELEMENTS: Final = Elements(
    call=_tags("<", _CALLS, " "),
    call_ends=_tags("</", _CALLS, ">"),
    parameter=_tags("<", _PARAMETERS, " "),
    parameter_ends=_tags("</", _PARAMETERS, ">"),
    wrappers=_tags("<", _WRAPPERS, ">"),
    wrapper_ends=_tags("</", _WRAPPERS, ">"),
    types=_types,
    bodies=True,
    whole=("arguments", "input"),
)


def _format(name: str, token: str, wrapper: str, style: str) -> ToolFormat:
    blank = " " if wrapper.startswith(" ") else ""
    opener = f"<{token}{wrapper}>"
    tag = Tag(
        f'{opener}\n<{token}{blank}invoke name="NAME">\n',
        f"</{token}{blank}invoke>\n</{token}{wrapper}>",
        (opener,),
        style,
    )
    return ToolFormat(
        name,
        _ELEMENTS.read,
        openers=(*_ELEMENTS.wrappers, *_ELEMENTS.call),
        tags=(tag,),
    )


FORMATS: Final = (
    _format("dsml", "｜DSML｜", "function_calls", "deepseek_xml"),
    _format("dsml_v4", "｜DSML｜", "tool_calls", "deepseek_xml"),
    _format("dsml_v41", "｜DSML｜", " calls", "deepseek_v4_1_xml"),
    _format("dsml_gcml", "｜GCML｜", "tool_calls", "deepseek_xml"),
)
