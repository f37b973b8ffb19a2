"""Clip family: interface of the video processors of one group of models: frames, sizes, prompt layout, tensors; pure.

Made from the files of one checkpoint (`video_registry`), beside the family of its pictures. The order of work is that
of pictures: `plan` by the header, `layout` for the prompt, `patches` of the frames in a thread, `batch` for a worker.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from smg_node.media.engine_media import MediaRange, TensorBatch
from smg_node.media.family import FinishedFor, PictureLayout, TokenLookup
from smg_node.media.video.clip import ClipHeader, ClipPlan

if TYPE_CHECKING:
    from smg_node.media.picture import Pixels


class TextTokens(TokenLookup, Protocol):
    """The tokenizer, as far as the prompts of clips need it."""

    def token_ids(self, text: str) -> Sequence[int]:
        """Return the ids of a text that stands alone, without those that begin or end a prompt."""
        ...


class ClipFamily(Protocol):
    """The video processor of one checkpoint."""

    modality: Literal["video"]
    """What it makes tensors of."""
    name: str
    """The family, as logs and `explain` show it, such as "qwen3_vl"."""
    anchor: str
    """The token text that the chat template writes once for each clip."""
    placeholder: int
    """The id that engines take for the place of a feature (the checkpoint's video_token_id)."""
    fingerprint: str
    """Digest of all numbers that the values depend on; part of every clip's identity."""

    def plan(self, header: ClipHeader) -> ClipPlan:
        """Return the plan for a clip of that size and length.

        SmgError `invalid_video` without a path for clips that the family refuses: too short, or a ratio over 200.
        """
        ...

    def layout(self, plan: ClipPlan, tokens: TextTokens) -> PictureLayout:
        """Return the ids that replace the anchor of a clip."""
        ...

    def patches(self, frames: "Iterable[Pixels]", plan: ClipPlan) -> "Pixels":
        """Return the 8-bit values of a clip, of shape `plan.shape`, from those of its frames that `plan.frames` names.

        Each is taken from `frames` when it is needed, and [height, width, 3]; meant for a thread.
        """
        ...

    def batch(
        self,
        plans: Sequence[ClipPlan],
        patches: "Sequence[Pixels]",
        ranges: Sequence[MediaRange],
        wanted: FinishedFor,
    ) -> TensorBatch:
        """Return the clips of one prompt as tensors."""
        ...
