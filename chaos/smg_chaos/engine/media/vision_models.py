"""Vision models of simulated engines: sizes that tensors and prompts of pictures must have."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

Vision: TypeAlias = Literal["", "qwen2_5_vl", "qwen3_vl", "llava", "qwen2_5_omni"]


@dataclass(frozen=True, slots=True)
class VisionModel:
    """One family. `patch` 0: its pictures are whole, of `side` pixels each way and `tokens` features.

    `opens`, `anchor`, `closes` are the tokens that its template writes for a picture; `normalizes` is whether vLLM
    takes 8-bit values of it. `video` and `sound` are the anchors of those, between what opens and closes them, "" for
    none; `timed` is whether prompts have the time of every step of a video, and its features between what opens and
    closes a picture; where it `hears`, it is a model of several parts, which its config.json keeps apart.
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
    video: str = ""
    timed: bool = False
    sound: str = ""
    sound_opens: str = ""
    sound_closes: str = ""

    @property
    def hears(self) -> bool:
        """Whether it takes sound."""
        return bool(self.sound)

    def anchors(self) -> dict[str, str]:
        """Return the anchors of what it takes, by modality."""
        found = {"image": self.anchor, "video": self.video, "audio": self.sound}
        return {kind: anchor for kind, anchor in found.items() if anchor}

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
        video="<|video_pad|>",
        timed=patch == 16,
    )


MODELS: Final[Mapping[str, VisionModel]] = MappingProxyType(
    {
        "qwen2_5_vl": _qwen("qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", 14),
        "qwen3_vl": _qwen("qwen3_vl", "Qwen3VLForConditionalGeneration", 16),
        "qwen2_5_omni": VisionModel(
            "qwen2_5_omni",
            "Qwen2_5OmniModel",
            "<|IMAGE|>",
            "<|vision_bos|>",
            "<|vision_eos|>",
            14,
            video="<|VIDEO|>",
            sound="<|AUDIO|>",
            sound_opens="<|audio_bos|>",
            sound_closes="<|audio_eos|>",
        ),
        "llava": VisionModel(
            "llava", "LlavaForConditionalGeneration", "<image>", side=336, tokens=576
        ),
    }
)
