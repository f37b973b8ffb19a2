"""Family: interface of the image processors of one group of models: sizes, tokens, prompt layout, tensors; pure.

A family is made from the files of one checkpoint (`families/registry`), so that its methods know all of the
checkpoint's numbers. The order of work for a request: `plan` every picture by its header; `layout` gives the ids that
replace the picture's anchor in the prompt; `patches` makes the 8-bit values (in a thread, cached by the picture's
digest); `batch` finishes those of one prompt for the worker that was chosen (in a thread).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import msgspec

from smg_node.media.engine_media import Dtype, MediaRange, TensorBatch

if TYPE_CHECKING:
    from smg_node.media.picture import Picture, Pixels

ContentOrder: TypeAlias = Literal["as_sent", "media_first"]


class PicturePlan(msgspec.Struct, frozen=True):
    """What becomes of a picture of a known size: decided by its header alone.

    `width` and `height` are the original's, `columns` and `rows` the resized one's in pixels (of the whole canvas for
    families that cut tiles). `tokens` is how many placeholder ids it has in the prompt. `shape` is that of the array
    that `Family.patches` makes. `grid` is the family's own: temporal, rows and columns of patches for the Qwen group,
    rows and columns of tiles for those that cut tiles.
    """

    width: int
    height: int
    columns: int
    rows: int
    tokens: int
    shape: tuple[int, ...]
    grid: tuple[int, ...]


class PictureLayout(msgspec.Struct, frozen=True):
    """Ids that stand in the place of a picture's anchor.

    The range that engines are told begins `before` ids after the first of them and ends `after` ids before the last.
    `joins` are pairs of tokens that are one where they meet in the expanded prompt, and that one: newlines of a layout
    beside those of the text. They lie outside of ranges.
    """

    ids: "Sequence[int]"
    before: int = 0
    after: int = 0
    joins: tuple[tuple[int, int, int], ...] = ()


class FinishedFor(msgspec.Struct, frozen=True):
    """What the chosen worker wants: the dtype of the main tensor, and whether it normalises 8-bit values itself.

    Where `device_normalizes` is true the values are sent as uint8 whatever `dtype` says.
    """

    dtype: Dtype
    device_normalizes: bool


class TokenLookup(Protocol):
    """The tokenizer, as far as families need it."""

    def token_id(self, text: str) -> int | None:
        """Return the id of a token that the vocabulary has under exactly this text."""
        ...


class Family(Protocol):
    """The image processor of one checkpoint."""

    modality: Literal["image"]
    """What it makes tensors of; videos have `media.video.clip_family`."""
    name: str
    """The family, as logs and `explain` show it, such as "qwen3_vl"."""
    anchor: str
    """The token text that the chat template writes once for each picture."""
    placeholder: int
    """The id that engines take for the place of a feature (the checkpoint's image_token_id)."""
    order: ContentOrder
    """Whether string templates get media before the texts of a turn, or parts in the order they were sent."""
    fingerprint: str
    """Digest of all numbers that the values depend on; part of every picture's identity."""

    def plan(self, width: int, height: int, *, area_max: int | None = None) -> PicturePlan:
        """Return the plan for a picture of that size, in pixels.

        `area_max` bounds the resized area in pixels (`detail: low`), where the family has such a bound.
        SmgError `invalid_image` without a path for sizes that the family refuses, such as a ratio over 200.
        """
        ...

    def layout(self, plan: PicturePlan, tokens: TokenLookup) -> PictureLayout:
        """Return the ids that replace the anchor of a picture."""
        ...

    def patches(self, picture: "Picture", plan: PicturePlan) -> "Pixels":
        """Return the 8-bit values of a decoded picture, resized and in the model's order, of shape `plan.shape`.

        Takes milliseconds and releases the interpreter in its kernels; meant for a thread.
        """
        ...

    def batch(
        self,
        plans: Sequence[PicturePlan],
        patches: "Sequence[Pixels]",
        ranges: Sequence[MediaRange],
        wanted: FinishedFor,
    ) -> TensorBatch | None:
        """Return the pictures of one prompt as tensors; None where their sizes cannot be one tensor of this family."""
        ...
