"""The weights of our tiny models: a Llama that recites; `tiny_model` tells how and why."""

import json
import math
import random
import struct
import sys
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeAlias

HIDDEN: Final = 128
LAYERS: Final = 2
HEADS: Final = 4
KV_HEADS: Final = 2
HEAD_SIZE: Final = 32
INNER: Final = 256
LEAD_LOGIT: Final = 50.0
"""Logit of the token that comes next; the others lie around 0, deviating by LEAD / sqrt(HIDDEN)."""

Floats: TypeAlias = "array[float]"


@dataclass(frozen=True, slots=True)
class Tensor:
    """A matrix or vector of 32-bit floats, row after row."""

    shape: tuple[int, ...]
    values: Floats


def weights(
    ids: Sequence[int], *, end: int, rows: int, endless: bool, seed: int
) -> dict[str, Tensor]:
    """Return every tensor of the model that says `ids` and then `end`, or `ids` again if `endless`."""
    rng = random.Random(seed)
    inside = frozenset(ids)
    directions = [_direction(rng, inside=row in inside) for row in range(rows)]
    head = [[0.0] * HIDDEN for _ in range(rows)]
    gain = LEAD_LOGIT / HIDDEN
    for before, after in pairwise(ids):
        head[after] = [gain * x for x in directions[before]]
    last = [gain * x for x in directions[ids[-1]]]
    head[ids[0]][0] = LEAD_LOGIT / math.sqrt(HIDDEN)
    if endless:
        head[ids[0]] = [a + b for a, b in zip(head[ids[0]], last, strict=True)]
    else:
        head[end] = last
    tensors = {
        "model.embed_tokens.weight": _matrix(directions),
        "lm_head.weight": _matrix(head),
        "model.norm.weight": _filled(1.0, HIDDEN),
    }
    for layer in range(LAYERS):
        tensors |= _layer(rng, f"model.layers.{layer}.")
    return tensors


def _direction(rng: random.Random, *, inside: bool) -> list[float]:
    """Return an embedding of length sqrt(HIDDEN), so that RMSNorm leaves it as it is."""
    first, spread = (0.0, 1.0) if inside else (math.sqrt(HIDDEN), 0.01)
    values = [first, *(rng.gauss(0.0, spread) for _ in range(HIDDEN - 1))]
    scale = math.sqrt(HIDDEN) / math.sqrt(sum(x * x for x in values))
    return [x * scale for x in values]


def _layer(rng: random.Random, at: str) -> dict[str, Tensor]:
    """Return one block whose two outputs are zero, whatever goes on inside."""
    queries, keys = HEADS * HEAD_SIZE, KV_HEADS * HEAD_SIZE
    return {
        at + "input_layernorm.weight": _filled(1.0, HIDDEN),
        at + "post_attention_layernorm.weight": _filled(1.0, HIDDEN),
        at + "self_attn.q_proj.weight": _noise(rng, queries, HIDDEN),
        at + "self_attn.k_proj.weight": _noise(rng, keys, HIDDEN),
        at + "self_attn.v_proj.weight": _noise(rng, keys, HIDDEN),
        at + "self_attn.o_proj.weight": _filled(0.0, HIDDEN, queries),
        at + "mlp.gate_proj.weight": _noise(rng, INNER, HIDDEN),
        at + "mlp.up_proj.weight": _noise(rng, INNER, HIDDEN),
        at + "mlp.down_proj.weight": _filled(0.0, HIDDEN, INNER),
    }


def _matrix(lines: Sequence[Sequence[float]]) -> Tensor:
    return Tensor((len(lines), HIDDEN), array("f", (x for line in lines for x in line)))


def _filled(value: float, *shape: int) -> Tensor:
    return Tensor(shape, array("f", [value]) * math.prod(shape))


def _noise(rng: random.Random, *shape: int) -> Tensor:
    values = (rng.gauss(0.0, 0.02) for _ in range(math.prod(shape)))
    return Tensor(shape, array("f", values))


def write_safetensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write the safetensors format: eight bytes of header length, a JSON header, the raw numbers."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, tensor in tensors.items():
        size = 4 * len(tensor.values)
        header[name] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(_little_endian(tensor.values))


def _little_endian(values: Floats) -> bytes:
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return values.tobytes()
