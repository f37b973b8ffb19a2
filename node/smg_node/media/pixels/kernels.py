"""Kernels of pixels: the compiled ones where they were made, and whether this processor runs their wide form."""

from types import ModuleType
from typing import Final


def _found() -> ModuleType | None:
    try:
        from smg_node.native import pixel_kernels
    except ImportError:
        return None
    return pixel_kernels


KERNELS: Final = _found()
"""`native.pixel_kernels`, or None where there was no compiler: then numpy does the same."""
VECTORS: Final = KERNELS is not None and bool(KERNELS.has_avx2())
"""Whether the loops for AVX2 are taken."""
