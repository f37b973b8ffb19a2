"""FunctionGemma calls: `call:name{…}`, whose strings stand between `<escape>` and may hold anything
else.

<start_function_call>call:find_museum{city:<escape>Ghent<escape>,max:3}<end_function_call>
"""

from typing import Final

from smg_node.parsers.notations.brace_calls import own_calls
from smg_node.parsers.reading.format import ToolFormat

FORMATS: Final = (
    ToolFormat(
        "functiongemma",
        own_calls("<escape>", "<end_function_call>"),
        openers=("<start_function_call>",),
        noise=("<end_function_call>",),
    ),
)
