"""Step3 calls: elements, each between tokens that name its kind.

<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="find_museum"><steptml:parameter name="city">Ghent</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>
"""

from typing import Final

from smg_node.parsers.notations.xml_elements import Elements
from smg_node.parsers.reading.format import ToolFormat

_OPENER: Final = "<｜tool_calls_begin｜>"
_CLOSER: Final = "<｜tool_calls_end｜>"
_CALL_OPENER: Final = "<｜tool_call_begin｜>"
_CALL_CLOSER: Final = "<｜tool_call_end｜>"
_SEPARATOR: Final = "<｜tool_sep｜>"
_ELEMENTS: Final = Elements(
    call=("<steptml:invoke ",),
    call_ends=("</steptml:invoke>",),
    parameter=("<steptml:parameter ",),
    parameter_ends=("</steptml:parameter>",),
    wrappers=(_OPENER,),
    wrapper_ends=(_CLOSER,),
    lead=(_CALL_OPENER, "function", _SEPARATOR),
)

FORMATS: Final = (
    ToolFormat(
        "step3",
        _ELEMENTS.read,
        openers=(_OPENER, *_ELEMENTS.call),
        noise=(_CLOSER, _CALL_OPENER, _CALL_CLOSER, _SEPARATOR),
    ),
)
