"""Which frames of a clip are seen: between bounds, ascending, from the first; and exactly those of numpy and torch."""

from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.media.video.frame_choice import FRAMES_MAX, FrameRate, spread, stepped
from support.media.drawn_clips import STEPS_DIGEST, step_cases

RATES = st.builds(
    FrameRate,
    st.floats(0.01, 40, allow_nan=False),
    st.integers(1, FRAMES_MAX),
    st.integers(1, FRAMES_MAX),
)
PUBLISHED = FrameRate(2.0, 4, 768)


@given(st.integers(2, 2_000_000), st.floats(0.01, 1000), RATES)
def test_frames_ascend_inside_of_the_clip_and_are_no_more_than_allowed(
    total: int, fps: float, rate: FrameRate
) -> None:
    chosen = spread(total, fps, rate)
    assert chosen[0] == 0
    assert chosen == sorted(set(chosen))
    assert chosen[-1] <= total - 1
    assert len(chosen) <= min(rate.frames_max, total)
    if len(chosen) > 1:
        assert chosen[-1] == total - 1


@given(st.integers(2, 2_000_000), st.floats(0.01, 1000), RATES, st.sampled_from([1, 2, 3, 4]))
def test_steps_ascend_inside_of_the_clip_or_are_refused(
    total: int, fps: float, rate: FrameRate, temporal: int
) -> None:
    few = min(max(total / fps * min(rate.fps, 30.0), rate.frames_min), rate.frames_max, total)
    if few < temporal:
        with pytest.raises(SmgError, match="at a time") as refusal:
            stepped(total, fps, rate, temporal)
        assert refusal.value.code == "invalid_video"
        return
    chosen = stepped(total, fps, rate, temporal)
    assert chosen[0] == 0
    assert chosen == sorted(set(chosen))
    assert chosen[-1] <= total - 1
    assert len(chosen) <= min(rate.frames_max, total) + 1


@given(st.integers(2, 300_000), st.floats(0.5, 120))
def test_frames_are_numpys(total: int, fps: float) -> None:
    chosen = spread(total, fps, PUBLISHED)
    count = min(max(int(total / fps * 2.0), 4), 768, total)
    assert chosen == np.linspace(0, total - 1, count).round().astype(int).tolist()


def test_steps_are_torchs() -> None:
    """Five thousand clips of up to 200,000 frames; the digest is of `torch.arange(0, total, total / n).int()`."""
    digest = sha256()
    for total, count in step_cases():
        # So many frames a second that exactly `count` are asked for.
        rate = FrameRate(2.0, count, count)
        chosen = stepped(total, 25.0, rate, 2)
        digest.update(np.asarray(chosen, dtype="<i4").tobytes())
    assert digest.hexdigest() == STEPS_DIGEST


@pytest.mark.parametrize("total", [0, 1])
def test_less_than_two_frames_are_no_video(total: int) -> None:
    with pytest.raises(SmgError, match="fewer than two frames"):
        spread(total, 25.0, PUBLISHED)
    with pytest.raises(SmgError, match="fewer than two frames"):
        stepped(total, 25.0, PUBLISHED, 2)
