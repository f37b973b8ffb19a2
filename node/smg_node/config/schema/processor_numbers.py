"""Processor numbers: what an operator may say of a model's image processor in place of its files; checked when it is set.

Keys are those of preprocessor_config.json that families of models read (`media/families`); what each means depends on
the family, so that ranges are those within which any of them can work. Where a number of a checkpoint's own files is
outside of them, its family says so when the first picture comes.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from smg_node.config.schema.suggestions import did_you_mean

Check: TypeAlias = Callable[[str, Any], None]
"""Raises ValueError, in an operator's words, for a value at a path that cannot be."""

SIDE_MAX: Final = 4_096
"""Pixels of a side that all pictures are brought to, or of one tile; the largest published one has 1,540."""
PATCH_MAX: Final = 128
"""Pixels of a patch's side; published ones have 14 to 32."""
ENLARGED_MAX: Final = 1 << 24
"""Area to which small pictures are enlarged at most; published ones are below 70,000."""
AREA_MAX: Final = 1 << 32
_CANVASES_MAX: Final = 256
_CHANNELS: Final = 3
_RATE_MAX: Final = 240
"""Frames a second of a video that are looked at, at most."""
_TILES_MAX: Final = 144
_NUMBER_MAX: Final = 1e9
_SHOWN_MAX: Final = 60


def check_processor_numbers(numbers: Mapping[str, Any]) -> None:
    """Raise ValueError for a key that no family reads, and for a value that none can work with."""
    _check_keys("", numbers, NUMBERS)
    for low, high in (("min_pixels", "max_pixels"), ("min_patches", "max_patches")):
        if low in numbers and high in numbers and numbers[low] > numbers[high]:
            raise ValueError(f"{low} is {numbers[low]}, above {high}, which is {numbers[high]}")


def _check_keys(path: str, numbers: Mapping[str, Any], known: Mapping[str, Check]) -> None:
    for key, value in numbers.items():
        check = known.get(key)
        if check is None:
            meant = did_you_mean(key, known) or f"; there are {', '.join(known)}"
            raise ValueError(f"no image processor here reads {path}{_shown(key)}{meant}")
        check(path + key, value)


def _whole(most: int) -> Check:
    def check(path: str, value: Any) -> None:
        whole = (
            not isinstance(value, bool) and isinstance(value, int | float) and value == value // 1
        )
        if not whole or not 1 <= value <= most:
            raise ValueError(f"{path} is {_shown(value)}, not a whole number from 1 to {most}")

    return check


def _either(number: Check, sizes: Mapping[str, Check]) -> Check:
    """Return the check of what is one number, or an object of several."""

    def check(path: str, value: Any) -> None:
        if isinstance(value, dict):
            _check_keys(f"{path}.", value, sizes)
        else:
            number(path, value)

    return check


def _switch(path: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{path} is {_shown(value)}, neither true nor false")


def _filter(path: str, value: Any) -> None:
    if isinstance(value, bool) or value not in (1, 2, 3):
        raise ValueError(
            f"{path} is {_shown(value)}, none of 1 (Lanczos), 2 (bilinear) and 3 (bicubic)"
        )


def _rate(path: str, value: Any) -> None:
    if not _is_number(value) or not 0 < value <= _RATE_MAX:
        raise ValueError(f"{path} is {_shown(value)}, not a number above 0 and up to {_RATE_MAX}")


def _object(parts: Mapping[str, Check]) -> Check:
    """Return the check of an object of several."""

    def check(path: str, value: Any) -> None:
        if not isinstance(value, dict):
            raise ValueError(f"{path} is {_shown(value)}, not an object")
        _check_keys(f"{path}.", value, parts)

    return check


def _rescale(path: str, value: Any) -> None:
    if not _is_number(value) or not 0 < value <= 1:
        raise ValueError(f"{path} is {_shown(value)}, not a number above 0 and up to 1")


def _colours(*, positive: bool) -> Check:
    def check(path: str, value: Any) -> None:
        numbers = [value] * _CHANNELS if _is_number(value) else value
        good = (
            isinstance(numbers, list)
            and len(numbers) == _CHANNELS
            and all(map(_is_number, numbers))
        )
        if not good or (positive and not all(each > 0 for each in numbers)):
            above = " above 0" if positive else ""
            raise ValueError(f"{path} is {_shown(value)}, not three numbers{above}")

    return check


def _canvases(path: str, value: Any) -> None:
    if not isinstance(value, list) or not 0 < len(value) <= _CANVASES_MAX:
        raise ValueError(f"{path} is not a list of 1 to {_CANVASES_MAX} sizes")
    side = _whole(2 * SIDE_MAX)
    for at, size in enumerate(value):
        if not isinstance(size, list) or len(size) != 2:
            raise ValueError(f"{path}[{at}] is {_shown(size)}, not a height and a width")
        for each in size:
            side(f"{path}[{at}]", each)


def _is_number(value: Any) -> bool:
    """Whether a value is a number; one beyond all reason is none, as is infinity."""
    return (
        not isinstance(value, bool) and isinstance(value, int | float) and abs(value) < _NUMBER_MAX
    )


def _shown(value: Any) -> str:
    huge = isinstance(value, int) and abs(value) >= AREA_MAX**2
    text = "a number of many digits" if huge else repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"


_SIDES: Final[Mapping[str, Check]] = MappingProxyType(
    {
        "height": _whole(SIDE_MAX),
        "width": _whole(SIDE_MAX),
        # Areas in the Qwen group, sides elsewhere.
        "shortest_edge": _whole(ENLARGED_MAX),
        "longest_edge": _whole(AREA_MAX),
        "max_height": _whole(1 << 16),
        "max_width": _whole(1 << 16),
    }
)
_OWN: Final[Mapping[str, Check]] = MappingProxyType(
    {
        "patch_size": _whole(PATCH_MAX),
        "merge_kernel_size": _whole(16),
        "in_patch_limit": _whole(1 << 20),
        "patch_limit_on_one_side": _whole(1 << 16),
        "image_mean": _colours(positive=False),
        "image_std": _colours(positive=True),
    }
)
"""What Kimi's own processor has in an object of its own."""
_PICTURES: Final[Mapping[str, Check]] = MappingProxyType(
    {
        "min_pixels": _whole(ENLARGED_MAX),
        "max_pixels": _whole(AREA_MAX),
        "patch_size": _either(_whole(PATCH_MAX), _SIDES),
        "merge_size": _whole(16),
        "temporal_patch_size": _whole(16),
        "size": _either(_whole(SIDE_MAX), _SIDES),
        "crop_size": _either(_whole(SIDE_MAX), _SIDES),
        "longest_edge": _whole(1 << 16),
        "min_patches": _whole(1 << 20),
        "max_patches": _whole(1 << 20),
        "max_height": _whole(1 << 16),
        "dynamic_hd": _whole(144),
        "pooling_kernel_size": _whole(16),
        "max_soft_tokens": _whole(1 << 16),
        "image_grid_pinpoints": _canvases,
        "resample": _filter,
        "rescale_factor": _rescale,
        "image_mean": _colours(positive=False),
        "image_std": _colours(positive=True),
        "image_size": _whole(SIDE_MAX),
        "max_image_size": _either(_whole(SIDE_MAX), _SIDES),
        "min_dynamic_patch": _whole(_TILES_MAX),
        "max_dynamic_patch": _whole(_TILES_MAX),
        "dynamic_image_size": _switch,
        "use_thumbnail": _switch,
        "do_image_splitting": _switch,
        "do_resize": _switch,
        "do_rescale": _switch,
        "do_normalize": _switch,
        "do_pad": _switch,
        "do_center_crop": _switch,
        "do_convert_rgb": _switch,
        "do_pan_and_scan": _switch,
        "crop_to_patches": _switch,
        "resize_to_max_canvas": _switch,
        "media_proc_cfg": _either(_switch, _OWN),
        **{
            key: check
            for key, check in _OWN.items()
            if key not in ("patch_size", "image_mean", "image_std")
        },
    }
)
"""What image processors read."""
_CLIPS: Final[Mapping[str, Check]] = MappingProxyType(
    {
        **{
            key: _PICTURES[key]
            for key in (
                *("min_pixels", "max_pixels", "patch_size", "merge_size", "temporal_patch_size"),
                *("size", "resample", "rescale_factor", "image_mean", "image_std"),
                *("do_resize", "do_rescale", "do_normalize", "do_convert_rgb"),
            )
        },
        "fps": _rate,
        "min_frames": _whole(1 << 16),
        "max_frames": _whole(1 << 16),
        "num_frames": _whole(1 << 16),
        "max_video_tokens": _whole(1 << 24),
        "cap_pixels_per_frame": _switch,
    }
)
"""What video processors read."""
NUMBERS: Final[Mapping[str, Check]] = MappingProxyType(
    {**_PICTURES, "video_processor": _object(_CLIPS)}
)
"""The keys, and how the value of each is checked."""
