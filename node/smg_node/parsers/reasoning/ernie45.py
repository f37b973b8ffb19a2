"""ERNIE-4.5-Thinking (ernie45) reasoning: begun by the prompt, then the answer, sometimes between
tags.

…</think>⏎<response>⏎…⏎</response>
"""

from typing import Final

from smg_node.parsers.reading.format import ThoughtFormat

FORMATS: Final = (
    ThoughtFormat(
        "ernie45",
        ("<think>",),
        ("</think>",),
        trim=True,
        around=("<response>", "</response>"),
        start="inside",
    ),
)
