"""Forty random clips a checkpoint become what transformers 5.24 with torchvision makes of them, to the bit.

Which frames, grid, values in float32, ids of the prompt and seconds between steps: `judged_clips.json`, made by
`programs/clip_judge.py`.
"""

import json
from functools import cache
from hashlib import sha256
from typing import Any, Final

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import token_ids
from smg_node.media.expand import PlacedPicture, expand
from smg_node.media.family import FinishedFor
from smg_node.media.pixels import patches as patches_module
from smg_node.media.pixels import resize as resize_module
from smg_node.media.pixels.kernels import KERNELS
from smg_node.media.video.clip import ClipHeader
from smg_node.media.video.clip_family import ClipFamily
from smg_node.media.video.video_registry import UnknownClips, clip_family_of
from support.media.drawn_clips import JUDGED, PLACES, PROCESSORS, files, frames
from support.models.tiny_tokenizer import trained_tokenizer

ROWS: Final[dict[str, list[list[Any]]]] = json.loads(JUDGED.read_text())
VISION: Final = (
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
PROMPT: Final = "a<|vision_start|><|video_pad|><|vision_end|>b"
FLOATS: Final = FinishedFor("float32", device_normalizes=False)


class Tokens:
    """The judges' tokenizer."""

    def __init__(self) -> None:
        self.tokenizer: Tokenizer = trained_tokenizer()
        self.tokenizer.add_special_tokens(
            [AddedToken(text, special=True, normalized=False) for text in VISION]
        )

    def token_id(self, text: str) -> int | None:
        """Return the id of a token."""
        found: int | None = self.tokenizer.token_to_id(text)
        return found

    def token_ids(self, text: str) -> list[int]:
        """Return the ids of a text."""
        found: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return found


@cache
def tokens() -> Tokens:
    return Tokens()


@cache
def clips(name: str) -> ClipFamily:
    """Return the video processor of a checkpoint."""
    found = clip_family_of(files(name), overrides={}, tokens=tokens())
    assert not isinstance(found, UnknownClips), found.reason
    return found


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:24]


def test_every_checkpoint_was_judged() -> None:
    assert ROWS.keys() == PROCESSORS.keys()
    assert {len(rows) for rows in ROWS.values()} == {PLACES}


@pytest.mark.parametrize("name", PROCESSORS)
def test_frames_sizes_and_prompts_are_the_judges(name: str) -> None:
    family = clips(name)
    for total, width, height, fps, chosen, grid, *rest in ROWS[name]:
        header = ClipHeader(width, height, total, fps, "mp4", "h264")
        if grid is None:
            with pytest.raises(SmgError, match="video"):
                family.plan(header)
            continue
        plan = family.plan(header)
        assert digest(json.dumps(plan.frames).replace("(", "[").encode()) == chosen
        assert list(plan.grid) == grid
        layout = family.layout(plan, tokens())
        prompt = token_ids(tokens().token_ids(PROMPT))
        placed = PlacedPicture(layout, plan.tokens, "0" * 64, "video")
        anchor = tokens().token_id(family.anchor)
        assert anchor is not None
        ids, ranges = expand(prompt, anchor, [placed])
        _, length, ids_digest, seconds = rest
        assert (len(ids), digest(np.asarray(ids, dtype=np.uint32).tobytes())) == (
            length,
            ids_digest,
        )
        assert (ranges[0].length, ranges[0].tokens) == (len(layout.ids), plan.tokens)
        if seconds is not None:
            assert np.float32(plan.step_s) == np.float32(seconds)


@pytest.mark.parametrize("name", PROCESSORS)
def test_values_are_the_judges(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    family = clips(name)
    compiled = KERNELS is not None
    for seed, (total, width, height, fps, _, grid, *rest) in enumerate(ROWS[name]):
        if grid is None or grid[0] * grid[1] * grid[2] > 12_000:
            continue
        plan = family.plan(ClipHeader(width, height, total, fps, "mp4", "h264"))
        drawn = frames(width, height, plan.frames, seed)
        made = family.patches(iter(drawn), plan)
        assert made.shape == plan.shape
        if compiled:
            batch = family.batch([plan], [made], [], FLOATS)
            assert digest(b"".join(batch.pixels.pieces)) == rest[0], seed
        if seed < 4:
            with monkeypatch.context() as patch:
                patch.setattr(patches_module, "KERNELS", None)
                patch.setattr(resize_module, "resize", resize_module.resize_by_numpy)
                exact = family.patches(iter(drawn), plan)
            batch = family.batch([plan], [exact], [], FLOATS)
            assert digest(b"".join(batch.pixels.pieces)) == rest[0], seed
