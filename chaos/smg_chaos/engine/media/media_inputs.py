"""Media inputs: the pictures of a request as any contract has them, in words common to all."""

import hashlib
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

WIDTHS: Final[Mapping[str, int]] = {
    "uint8": 1,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "int64": 8,
    "uint32": 4,
}
"""Types that servicers know, and the bytes of one value."""
OpenShared: TypeAlias = Callable[[str, int, int], bytes]
"""Reads and removes a file of shared memory: its name, where to begin, how many bytes. OSError if it cannot."""


class MediaError(Exception):
    """Pictures that no servicer can read; it refuses the request with INVALID_ARGUMENT."""


@dataclass(frozen=True, slots=True)
class SentTensor:
    """One tensor. `shared` is whether it came through shared memory."""

    shape: tuple[int, ...]
    dtype: str
    data: bytes
    shared: bool = False

    def numbers(self) -> tuple[int, ...]:
        """Return the values of whole numbers."""
        return struct.unpack(f"<{len(self.data) // 8}q", self.data) if self.dtype == "int64" else ()

    @property
    def size(self) -> int:
        """The bytes that its shape calls for."""
        return WIDTHS[self.dtype] * math.prod(self.shape)


@dataclass(slots=True)
class SentMedia:
    """One batch of pictures; which fields are set follows from the way they came."""

    modality: int = 0
    key: str = "pixel_values"
    pixels: SentTensor | None = None
    sides: dict[str, SentTensor] = field(default_factory=dict)
    flat_keys: Mapping[str, str] = field(default_factory=dict)
    batched_keys: Sequence[str] = ()
    placeholder: int | None = None
    ranges: Sequence[tuple[int, int]] = ()
    hashes: Sequence[str] = ()
    urls: Sequence[str] = ()
    files: Sequence[bytes] = ()

    def contents(self) -> list[str]:
        """Return a digest of what each picture is, whatever it is called: of its values, its URL or its file."""
        if self.pixels is None:
            return [_digest(one.encode()) for one in self.urls] + [
                _digest(one) for one in self.files
            ]
        rows = self.rows()
        step = len(self.pixels.data) // max(1, sum(rows))
        found, at = [], 0
        for count in rows:
            found.append(_digest(self.pixels.data[at * step : (at + count) * step]))
            at += count
        return found

    def identities(self) -> Sequence[str]:
        """Return what the prefix cache takes each picture for: its hash where one was sent.

        Without hashes an engine takes one of the values of all pictures of the request, as SGLang does: a further
        picture makes all of them others.
        """
        if self.hashes or self.pixels is None:
            return self.hashes
        return [_digest(self.pixels.data)] * len(self.ranges)

    def rows(self) -> list[int]:
        """Return how many rows of the main tensor each picture has."""
        lengths = self.sides.get(self.flat_keys.get(self.key, ""))
        if lengths is not None:
            return list(lengths.numbers())
        grid = self.grid()
        if grid:
            return [math.prod(one) for one in grid]
        return [1] * (self.pixels.shape[0] if self.pixels and self.pixels.shape else 0)

    def grid(self) -> list[tuple[int, ...]]:
        """Return frames, rows and columns of patches of each picture; nothing where there are no grids."""
        for name in ("image_grid_thw", "video_grid_thw", "grid_thws"):
            if name in self.sides:
                values = self.sides[name].numbers()
                return [values[at : at + 3] for at in range(0, len(values), 3)]
        return []


def read_media(fields: Mapping[str, Any], open_shared: OpenShared | None) -> list[SentMedia]:
    """Return the batches of a request whose media fields are `fields`; MediaError for what cannot be read."""
    found: list[SentMedia] = []
    inputs = fields.get("mm_inputs")
    if inputs is not None:
        items = getattr(inputs, "items", None)
        if items is not None:
            found += [_item(one, open_shared) for one in items]
        else:
            found.append(_batch(inputs, open_shared))
    found += [_batch(one, open_shared) for one in fields.get("extra_mm_inputs", ())]
    if "media_refs" in fields:
        if found:
            raise MediaError("a request has media_refs and preprocessed multimodal inputs")
        urls = [one.url for one in fields["media_refs"].items]
        if not urls:
            raise MediaError("media_refs is set but carries no items")
        found.append(SentMedia(urls=urls))
    if "multimodal_input" in fields:
        found.append(SentMedia(files=list(fields["multimodal_input"].image_data)))
    return found


def _batch(inputs: Any, open_shared: OpenShared | None) -> SentMedia:
    has_hashes = hasattr(inputs, "mm_hashes")
    return SentMedia(
        modality=getattr(inputs, "modality", 1),
        key=getattr(inputs, "encoder_input_key", "") or "pixel_values",
        pixels=_tensor(inputs.pixel_values, open_shared)
        if inputs.HasField("pixel_values")
        else None,
        sides=_sides(inputs, open_shared),
        flat_keys=dict(inputs.flat_keys) if has_hashes else {},
        batched_keys=list(inputs.batched_keys) if has_hashes else (),
        placeholder=inputs.im_token_id if inputs.HasField("im_token_id") else None,
        ranges=[(one.offset, one.length) for one in inputs.mm_placeholders],
        hashes=list(inputs.mm_hashes) if has_hashes else (),
    )


def _item(item: Any, open_shared: OpenShared | None) -> SentMedia:
    pixels = item.encoder_input if item.HasField("encoder_input") else None
    return SentMedia(
        modality=item.modality,
        pixels=_tensor(pixels, open_shared, own_file=True) if pixels is not None else None,
        sides=_sides(item, open_shared),
        placeholder=item.placeholder_token_id if item.HasField("placeholder_token_id") else None,
        ranges=[(one.offset, one.length) for one in item.placeholders],
        hashes=[item.content_hash.hex()] if item.content_hash else (),
    )


def _sides(message: Any, open_shared: OpenShared | None) -> dict[str, SentTensor]:
    return {name: _tensor(one, open_shared) for name, one in message.model_specific_tensors.items()}


def _tensor(data: Any, open_shared: OpenShared | None, *, own_file: bool = False) -> SentTensor:
    """Return a tensor. `own_file`: the engine takes floats from shared memory only, as TokenSpeed does."""
    if data.dtype not in WIDTHS:
        raise MediaError(f"Unsupported proto tensor dtype: {data.dtype!r}")
    shared = False
    if not hasattr(data, "inline"):
        content = data.data
    elif (payload := data.WhichOneof("payload")) == "shm":
        if own_file and "float" not in data.dtype:
            raise MediaError(f"Unsupported TensorData dtype for SHM feature: {data.dtype!r}")
        content, shared = _shared(data.shm, open_shared), True
    elif payload == "inline":
        content = data.inline
    else:
        raise MediaError(f"TensorData payload {payload} is not there or not implemented")
    tensor = SentTensor(tuple(data.shape), data.dtype, content, shared)
    if not tensor.shape:
        raise MediaError("a tensor without axes")
    if len(content) != tensor.size:
        raise MediaError(
            f"TensorData byte length mismatch for dtype={data.dtype!r}, shape={list(data.shape)}: "
            f"expected {tensor.size}, got {len(content)}"
        )
    return tensor


def _shared(handle: Any, open_shared: OpenShared | None) -> bytes:
    if open_shared is None:
        raise MediaError("this engine has no shared memory")
    try:
        content = open_shared(handle.name, handle.offset, handle.nbytes)
    except OSError as error:
        raise MediaError(f"TensorData.shm {handle.name!r}: {error.strerror}") from error
    if len(content) != handle.nbytes:
        raise MediaError(f"TensorData.shm byte length mismatch for name={handle.name!r}")
    return content


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
