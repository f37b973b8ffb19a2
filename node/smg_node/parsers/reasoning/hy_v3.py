"""Hy3 and Hy4 (hy_v3) reasoning: `<think>` … `</think>`, both perhaps with a suffix; more are an
option (`varied`).
"""

from typing import Final

from smg_node.parsers.reading.format import ThoughtFormat

FORMATS: Final = (
    ThoughtFormat(
        "hy_v3",
        ("<think>", "<think:opensource>"),
        ("</think>", "</think:opensource>"),
        trim=True,
    ),
)
