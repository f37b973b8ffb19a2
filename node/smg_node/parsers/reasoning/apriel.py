"""Everything is a thought up to `[BEGIN FINAL RESPONSE]`: Apriel 1.5."""

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
