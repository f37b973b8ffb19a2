"""`◁think▷` … `◁/think▷`: Kimi before K2."""

from typing import Final

from smg_node.parsers.reading.format import ThoughtFormat

FORMATS: Final = (ThoughtFormat("kimi", ("◁think▷",), ("◁/think▷",)),)
