"""Granite reasoning: phrases of ordinary text in 3.2, tags in 3.3.

Here is my thought process: … Here is my response: …
<think>…</think><response>…</response>
"""

from typing import Final

from smg_node.parsers.reading.format import ThoughtFormat

FORMATS: Final = (
    ThoughtFormat(
        "granite",
        ("Here is my thought process:", "Here's my thought process:", "<think>"),
        ("Here is my response:", "Here's my response:", "</think>"),
        trim=True,
        around=("<response>", "</response>"),
    ),
)
