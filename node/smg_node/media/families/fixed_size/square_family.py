"""Square family: what families have in common whose pictures become one square each, with as many features."""

from typing import TYPE_CHECKING

from smg_node.media.families.checkpoint.checkpoint_family import CheckpointFamily
from smg_node.media.family import PicturePlan
from smg_node.media.sizes import Size, checked

if TYPE_CHECKING:
    from smg_node.media.picture import Picture, Pixels


class SquareFamily(CheckpointFamily):
    """A family of one square a picture; `side` is its side in pixels, `features` the placeholders of each picture.

    `rows_and_columns` is the plan's grid.
    """

    side: int
    features: int
    rows_and_columns: tuple[int, int] = (1, 1)

    def resized_to(self, size: Size) -> Size:
        """Return the size that a picture is resized to before its square is taken: the square itself, squeezed."""
        return Size(self.side, self.side)

    def plan(self, width: int, height: int, *, area_max: int | None = None) -> PicturePlan:
        """Return the plan: columns and rows are those before the square is taken from the middle."""
        size = self.resized_to(checked(width, height))
        return PicturePlan(
            width=width,
            height=height,
            columns=size.width,
            rows=size.height,
            tokens=self.features,
            shape=(3, self.side, self.side),
            grid=self.rows_and_columns,
        )

    def patches(self, picture: "Picture", plan: PicturePlan) -> "Pixels":
        """Return the square in the middle, channel by channel."""
        from smg_node.media.pixels.patches import planar  # numpy comes with the first picture

        side = self.side
        pixels = self.resized(picture, plan.columns, plan.rows)
        left, top = (plan.columns - side) // 2, (plan.rows - side) // 2
        return planar(pixels[top : top + side, left : left + side])
