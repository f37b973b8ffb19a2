"""Apriel 1.5 reasoning: everything up to `[BEGIN FINAL RESPONSE]`."""

from typing import Final

from smg_node.parsers.reading.format import ThoughtFormat

FORMATS: Final = (
    ThoughtFormat(
        "apriel",
        closers=("[BEGIN FINAL RESPONSE]",),
        trim=True,
        around=("", "[END FINAL RESPONSE]"),
        start="inside",
    ),
)
