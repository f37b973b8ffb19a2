"""Kimi reasoning before K2: `◁think▷` … `◁/think▷`."""

from typing import Final

from smg_node.parsers.reading.format import ThoughtFormat

FORMATS: Final = (ThoughtFormat("kimi", ("◁think▷",), ("◁/think▷",)),)
