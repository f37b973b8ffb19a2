"""Thought and answer between tags, each tag on a line: Hunyuan-A13B.

<think>⏎…⏎</think>⏎<answer>⏎…⏎</answer>
"""

from typing import Final

from smg_node.parsers.reading.format import ThoughtFormat

FORMATS: Final = (
    ThoughtFormat(
        "hunyuan_a13b",
        ("<think>",),
        ("</think>",),
        trim=True,
        around=("<answer>", "</answer>"),
    ),
)
