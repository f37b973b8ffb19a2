"""Dimensions of embeddings: vectors cut to their first numbers, and models that forbid it. Pure.

A model that was trained for it (Matryoshka representation learning) has the most important numbers of a vector
first, so that a beginning of it, brought back to length 1, is a vector too. Servers do that for models that are
marked so; over gRPC no contract has a field for it, and a model's metadata seldom tells. So it is done here unless
the metadata says no.
"""

import math
import re
import sys
from array import array
from collections.abc import Mapping
from typing import Final

from smg_node.core.errors import invalid, unsupported

PARAMETER: Final = "dimensions"
_FORBIDS: Final = frozenset({"false", "0", "no"})
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_BYTES: Final = 4


def check_dimensions(wanted: int, facts: Mapping[str, str]) -> None:
    """Refuse what a model does not have, by what is said of a worker: UNSUPPORTED or INVALID_REQUEST.

    `facts` are an engine's metadata, or an operator's labels: `is_matryoshka` and `matryoshka_dimensions`, as
    checkpoints call them.
    """
    sizes = [int(one) for one in _NUMBER.findall(facts.get("matryoshka_dimensions", ""))]
    if sizes and wanted not in sizes:
        known = ", ".join(map(str, sizes))
        raise invalid(f"this model has embeddings of {known} dimensions, not {wanted}", PARAMETER)
    if not sizes and facts.get("is_matryoshka", "").lower() in _FORBIDS:
        raise unsupported("the embeddings of this model cannot be shortened", PARAMETER)


def shortened(vector: bytes, wanted: int) -> bytes:
    """Return the first `wanted` numbers of `vector` (32-bit floats, little-endian), brought to length 1.

    INVALID_REQUEST where it has fewer. Of a vector that begins with zeros only, zeros are returned.
    """
    size = len(vector) // _BYTES
    if wanted > size:
        raise invalid(
            f"the embeddings of this model have {size} dimensions, not {wanted}", PARAMETER
        )
    numbers = array("f", vector[: wanted * _BYTES])
    if sys.byteorder == "big":
        numbers.byteswap()
    length = math.hypot(*numbers)
    if length > 0:
        numbers = array("f", [number / length for number in numbers])
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()
