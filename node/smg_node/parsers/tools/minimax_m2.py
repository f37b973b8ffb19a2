"""MiniMax M2 calls: elements in a wrapper of the family's own.

    <minimax:tool_call>⏎<invoke name="find_museum">⏎<parameter name="city">Ghent</parameter>⏎</invoke>⏎</minimax:tool_call>

One wrapper holds many calls and an answer many wrappers. A newline on each side of a value is layout,
but a value in the line of its tags is as it stands.
Another family has the same elements in `<dots_function_call>`.
"""

from typing import Final

from smg_node.parsers.notations.xml_elements import Elements
from smg_node.parsers.reading.format import Tag, ToolFormat

_OPENER: Final = "<minimax:tool_call>"
_CLOSER: Final = "</minimax:tool_call>"
_DOTS_OPENER: Final = "<dots_function_call>"
_DOTS_CLOSER: Final = "</dots_function_call>"
_ELEMENTS: Final = Elements(
    call=("<invoke ",),
    call_ends=("</invoke>",),
    parameter=("<parameter ",),
    parameter_ends=("</parameter>",),
    wrappers=(_OPENER, _DOTS_OPENER),
    wrapper_ends=(_CLOSER, _DOTS_CLOSER),
    trim=True,
)


def _format(name: str, *tags: Tag) -> ToolFormat:
    return ToolFormat(
        name,
        _ELEMENTS.read,
        openers=_ELEMENTS.wrappers,
        tags=tags,
    )


FORMATS: Final = (
    _format(
        "minimax_m2",
        Tag(
            f'{_OPENER}\n<invoke name="NAME">\n',
            f"</invoke>\n{_CLOSER}",
            (_OPENER,),
            "minimax_xml",
        ),
    ),
    _format("dots"),
)
