"""A thought that the prompt begins, then the answer, sometimes between tags: ERNIE-4.5-Thinking.

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
