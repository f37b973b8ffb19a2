"""Hunyuan-A13B reasoning: thought and answer between tags, each tag on a line.

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
