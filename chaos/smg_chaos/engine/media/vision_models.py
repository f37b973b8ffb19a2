"""Vision models of simulated engines: sizes that tensors and prompts of pictures must have."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

Vision: TypeAlias = Literal["", "qwen2_5_vl", "qwen3_vl", "llava"]


@dataclass(frozen=True, slots=True)
class VisionModel:
    """One family. `patch` 0: its pictures are whole, of `side` pixels each way and `tokens` features.

    `opens`, `anchor`, `closes` are the tokens that its template writes for a picture; `normalizes` is whether vLLM
    takes 8-bit values of it. `clip` is the anchor of a clip, "" for models that see none; `timed` is whether prompts
    have the time of every step, and the features of each between `opens` and `closes`.
    """

    name: str
    architecture: str
    anchor: str
    opens: str = ""
    closes: str = ""
    patch: int = 0
    merge: int = 2
    frames: int = 2
    side: int = 0
    tokens: int = 0
    normalizes: bool = False
    clip: str = ""
    timed: bool = False

    @property
    def columns(self) -> int:
        """Values of a patch."""
        return 3 * self.frames * self.patch * self.patch


def _qwen(name: str, architecture: str, patch: int) -> VisionModel:
    return VisionModel(
        name,
        architecture,
        "<|image_pad|>",
        "<|vision_start|>",
        "<|vision_end|>",
        patch,
        normalizes=True,
        clip="<|video_pad|>",
        timed=patch == 16,
    )


MODELS: Final[Mapping[str, VisionModel]] = MappingProxyType(
    {
        "qwen2_5_vl": _qwen("qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", 14),
        "qwen3_vl": _qwen("qwen3_vl", "Qwen3VLForConditionalGeneration", 16),
        "llava": VisionModel(
            "llava", "LlavaForConditionalGeneration", "<image>", side=336, tokens=576
        ),
    }
)
