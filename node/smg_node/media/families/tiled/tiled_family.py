"""Tiled family: what families have in common whose pictures are square tiles of a canvas and one tile of the whole.

The canvas is a grid of tiles; its tiles come row by row, and the tile of the whole picture last, where the family has
one and there is more than one other. Engines are sent the tiles of all pictures behind each other.
"""

from abc import abstractmethod
from typing import TYPE_CHECKING

from smg_node.media.families.checkpoint.checkpoint_family import CheckpointFamily
from smg_node.media.family import PicturePlan
from smg_node.media.sizes import Size, checked

if TYPE_CHECKING:
    from smg_node.media.picture import Picture, Pixels


class TiledFamily(CheckpointFamily):
    """A family of square tiles; `tile` is their side in pixels, `tile_tokens` the features of one."""

    tile: int
    tile_tokens: int
    has_whole = True

    @abstractmethod
    def grid(self, size: Size) -> Size:
        """Return columns and rows of tiles for a picture of that size."""

    def plan(self, width: int, height: int, *, area_max: int | None = None) -> PicturePlan:
        """Return the plan: columns and rows are the canvas's, `grid` its rows and columns of tiles."""
        grid = self.grid(checked(width, height))
        tiles = grid.area + (self.has_whole and grid.area > 1)
        return PicturePlan(
            width=width,
            height=height,
            columns=grid.width * self.tile,
            rows=grid.height * self.tile,
            tokens=tiles * self.tile_tokens,
            shape=(tiles, 3, self.tile, self.tile),
            grid=(grid.height, grid.width),
        )

    def patches(self, picture: "Picture", plan: PicturePlan) -> "Pixels":
        """Return the tiles row by row, then that of the whole where there is one."""
        import numpy as np  # it comes with the first picture

        from smg_node.media.pixels.patches import planar, planar_tiles

        canvas = self.canvas(picture, plan)
        tiles = planar_tiles(canvas, self.tile)
        if len(tiles) == plan.shape[0]:
            return tiles
        whole = planar(self.whole(picture, canvas))
        return np.concatenate((tiles, whole[None]))

    def canvas(self, picture: "Picture", plan: PicturePlan) -> "Pixels":
        """Return the canvas: the picture squeezed onto it."""
        return self.resized(picture, plan.columns, plan.rows)

    def whole(self, picture: "Picture", canvas: "Pixels") -> "Pixels":
        """Return the pixels of the tile of the whole: the picture squeezed into it."""
        return self.resized(picture, self.tile, self.tile)
