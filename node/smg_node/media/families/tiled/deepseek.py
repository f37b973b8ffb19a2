"""DeepSeek-VL2 and DeepSeek-OCR: a picture in the middle of a grey square, and tiles of it beside that.

All have one model_type and are told apart by their architectures. Engines make their pictures by code of their own: the
resizing is Pillow's, and the tiles have no separators in the prompt, because those are features of the model itself.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from smg_node.media.engine_media import MediaRange, TensorBatch
from smg_node.media.families.checkpoint.checkpoint_family import CheckpointFamily
from smg_node.media.families.checkpoint.processor_files import (
    HALF,
    SIDE_MAX,
    Normalization,
    ProcessorError,
    ProcessorFiles,
)
from smg_node.media.families.checkpoint.tensors import Layout, counts, finished, integers
from smg_node.media.family import FinishedFor, PicturePlan
from smg_node.media.sizes import Size, best_canvas, checked, contained, nearest_grid, tile_grids

if TYPE_CHECKING:
    from smg_node.media.picture import Picture, Pixels

ANCHOR: Final = "<image>"
VL2: Final = Layout(
    flat_keys={"pixel_values": "num_patches"},
    batched_keys=("images_spatial_crop", "num_patches"),
    cpu_keys=("images_spatial_crop",),
)
OCR: Final = Layout(
    flat_keys={"images_crop": "patches_per_image"},
    batched_keys=("pixel_values", "images_spatial_crop", "patches_per_image"),
    cpu_keys=("images_spatial_crop",),
)
GREY: Final = 127
"""What the published processors fill up with: the mean, cut to a level."""
CROPPED_MAX: Final = 2
"""Most pictures of a request that DeepSeek-VL2 cuts into tiles; with more, each becomes one."""
CROPS_MIN, CROPS_MAX = 2, 6
BASE: Final = 1024
PATCH, POOLED = 16, 4
_BICUBIC: Final = 3
_CANVASES_MAX: Final = 64
_TILES_MAX: Final = 36


class GreyFamily(CheckpointFamily):
    """A DeepSeek model with pictures on grey."""

    def __init__(self, files: ProcessorFiles, *, name: str) -> None:
        for key in ("image_mean", "image_std"):
            told = files.processor.get(key)
            if told is not None and told != list(HALF):
                raise ProcessorError(f"{key} of processor_config.json is not {list(HALF)}")
        if files.processor.get("normalize") is False:
            raise ProcessorError("normalize of processor_config.json is false")
        super().__init__(
            files,
            name=name,
            anchor=ANCHOR,
            mean_std=Normalization(1 / 255, HALF, HALF, stepwise=True),
            kernel=_BICUBIC,
            resampler="pillow",
        )

    def on_grey(self, picture: "Picture", canvas: Size) -> "Pixels":
        """Return a canvas with the whole picture in its middle, as large as it fits."""
        from smg_node.media.pixels.patches import padded  # numpy comes with the first picture

        drawn = contained(Size(picture.width, picture.height), canvas)
        left, top = (round((canvas[at] - drawn[at]) * 0.5) for at in range(2))
        pixels = self.resized(picture, *drawn)
        return padded(pixels, *canvas, left=left, top=top, level=GREY)


class DeepseekVl2Family(GreyFamily):
    """DeepSeek-VL2: the square of the whole first, then the tiles of the canvas that fits best."""

    def __init__(self, files: ProcessorFiles) -> None:
        self.canvases = _canvases(files)
        self.tile = self.canvases[0].width
        for canvas in self.canvases:
            tiles = canvas.area // self.tile**2
            if canvas.width % self.tile or canvas.height % self.tile or tiles > _TILES_MAX:
                raise ProcessorError("candidate_resolutions has one that is not made of tiles")
        patch = _number(files, "patch_size", 14)
        pooled = _number(files, "downsample_ratio", 2)
        self.cells = math.ceil(self.tile // patch / pooled)
        if not self.cells:
            raise ProcessorError("patch_size is above the first of candidate_resolutions")
        super().__init__(files, name="deepseek_vl2")

    def plan(self, width: int, height: int, *, area_max: int | None = None) -> PicturePlan:
        """Return the plan: columns and rows are the canvas's, `grid` its rows and columns of tiles."""
        canvas = best_canvas(checked(width, height), self.canvases)
        rows, columns = canvas.height // self.tile, canvas.width // self.tile
        cells = self.cells
        beside = rows * cells * (columns * cells + 1)
        return PicturePlan(
            width=width,
            height=height,
            columns=canvas.width,
            rows=canvas.height,
            tokens=cells * (cells + 1) + 1 + beside,
            shape=(1 + rows * columns, 3, self.tile, self.tile),
            grid=(rows, columns),
        )

    def patches(self, picture: "Picture", plan: PicturePlan) -> "Pixels":
        """Return the square of the whole, then the tiles row by row."""
        import numpy as np

        from smg_node.media.pixels.patches import planar, planar_tiles

        whole = planar(self.on_grey(picture, Size(self.tile, self.tile)))
        canvas = self.on_grey(picture, Size(plan.columns, plan.rows))
        return np.concatenate((whole[None], planar_tiles(canvas, self.tile)))

    def batch(
        self,
        plans: Sequence[PicturePlan],
        patches: "Sequence[Pixels]",
        ranges: Sequence[MediaRange],
        wanted: FinishedFor,
    ) -> TensorBatch | None:
        """Return the tiles of all pictures behind each other; None for more than two, which are not cut."""
        if len(plans) > CROPPED_MAX:
            return None
        sides = {
            "images_spatial_crop": integers([plan.grid[::-1] for plan in plans]),
            "num_patches": counts([plan.shape[0] for plan in plans]),
        }
        return self.flat_batch(VL2, plans, patches, ranges, wanted, sides)


class DeepseekOcrFamily(GreyFamily):
    """DeepSeek-OCR and DeepSeek-OCR 2: the square of the whole, and tiles of pictures that are larger than one."""

    def __init__(self, files: ProcessorFiles, *, name: str, tile: int, line_ends: bool) -> None:
        for key, value in (("image_size", tile), ("base_size", BASE), ("max_crops", CROPS_MAX)):
            if files.raw(key)[0] not in (None, value):
                raise ProcessorError(f"{key} is not {value}, which engines count by")
        if files.raw("crop_mode")[0] is False:
            raise ProcessorError("crop_mode is false")
        self.tile = tile
        self.line_ends = line_ends
        super().__init__(files, name=name)

    def plan(self, width: int, height: int, *, area_max: int | None = None) -> PicturePlan:
        """Return the plan: columns and rows are those of the tiles together, `grid` their rows and columns.

        `shape` is the number of levels: a square of the whole, then the tiles, of another size.
        """
        size, grid = checked(width, height), Size(1, 1)
        if max(size) > self.tile:
            grid = nearest_grid(size, tile_grids(CROPS_MIN, CROPS_MAX), tile=self.tile)
        tiles = grid.area if grid.area > 1 else 0
        base, cells = BASE // PATCH // POOLED, math.ceil(self.tile // PATCH / POOLED)
        ends = int(self.line_ends)
        beside = grid.height * cells * (grid.width * cells + ends) if tiles else 0
        return PicturePlan(
            width=width,
            height=height,
            columns=grid.width * self.tile,
            rows=grid.height * self.tile,
            tokens=base * (base + ends) + 1 + beside,
            shape=(3 * (BASE**2 + tiles * self.tile**2),),
            grid=(grid.height, grid.width),
        )

    def patches(self, picture: "Picture", plan: PicturePlan) -> "Pixels":
        """Return the levels of the square of the whole, then those of the tiles, each channel by channel."""
        import numpy as np

        from smg_node.media.pixels.patches import planar, planar_tiles

        whole = planar(self.on_grey(picture, Size(BASE, BASE))).reshape(-1)
        if plan.grid == (1, 1):
            return whole
        tiles = planar_tiles(self.resized(picture, plan.columns, plan.rows), self.tile)
        return np.concatenate((whole, tiles.reshape(-1)))

    def batch(
        self,
        plans: Sequence[PicturePlan],
        patches: "Sequence[Pixels]",
        ranges: Sequence[MediaRange],
        wanted: FinishedFor,
    ) -> TensorBatch | None:
        """Return the squares, and the tiles of all pictures behind each other.

        None where a picture has no tiles: engines want a tensor of none for it, which no message can hold. And for a
        worker that normalises: it would not do so with the tiles.
        """
        tiles = [plan.grid[0] * plan.grid[1] for plan in plans]
        if wanted.device_normalizes or min(tiles) == 1:
            return None
        square = 3 * BASE**2
        cut = (-1, 3, self.tile, self.tile)
        crops = [levels[square:].reshape(cut) for levels in patches]
        shape = (sum(tiles), *cut[1:])
        sides = {
            "images_crop": finished(crops, shape, self.normalization, wanted),
            "images_spatial_crop": integers([plan.grid[::-1] for plan in plans]),
            "patches_per_image": counts(tiles),
        }
        wholes = [levels[:square].reshape(3, BASE, BASE) for levels in patches]
        shape = (len(plans), 3, BASE, BASE)
        pixels = finished(wholes, shape, self.normalization, wanted)
        return self.batch_of(OCR, pixels, sides, ranges)


def deepseek(files: ProcessorFiles) -> DeepseekVl2Family | DeepseekOcrFamily:
    """Return the family of a checkpoint of model_type `deepseek_vl_v2`, by its architecture."""
    match files.config.get("architectures"):
        case ["DeepseekOCRForCausalLM"]:
            return DeepseekOcrFamily(files, name="deepseek_ocr", tile=640, line_ends=True)
        case ["DeepseekOCR2ForCausalLM"]:
            return DeepseekOcrFamily(files, name="deepseek_ocr2", tile=768, line_ends=False)
        case None | ["DeepseekVLV2ForCausalLM"]:
            return DeepseekVl2Family(files)
        case _:
            raise ProcessorError("architectures of config.json is not one of deepseek_vl_v2's")


def _number(files: ProcessorFiles, name: str, default: int) -> int:
    """Return a whole number that stands in processor_config.json itself."""
    value = files.processor.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= SIDE_MAX:
        raise ProcessorError(f"{name} of processor_config.json is no number above nought")
    return files.note(name, value, "processor_config.json")


def _canvases(files: ProcessorFiles) -> tuple[Size, ...]:
    """Return the checkpoint's canvases, which are listed as width and height."""
    told = files.processor.get("candidate_resolutions")
    engine = files.config.get("candidate_resolutions")
    if told is not None and engine is not None and told != engine:
        raise ProcessorError("candidate_resolutions of config.json and of the processor differ")
    found = engine if told is None else told
    if not isinstance(found, list) or not 0 < len(found) <= _CANVASES_MAX:
        raise ProcessorError("candidate_resolutions is no list of canvases")
    canvases = tuple(_canvas(each) for each in found)
    return files.note("candidate_resolutions", canvases, "config.json")


def _canvas(told: object) -> Size:
    match told:
        case [int(wide), int(high)] if 0 < wide <= SIDE_MAX and 0 < high <= SIDE_MAX:
            return Size(wide, high)
    raise ProcessorError("candidate_resolutions has one that is no width and height")
