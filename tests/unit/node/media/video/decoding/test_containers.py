"""Kinds of video files are told by their first bytes, whatever follows and however few there are."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from smg_node.media.video.decoding.containers import READERS, container_of, other_kind
from support.house.tree import ROOT

CLIPS = ROOT / "tests" / "support" / "media" / "clips"
KINDS = {".mp4": "mp4", ".mkv": "matroska", ".webm": "matroska", ".avi": "avi", ".gif": "gif"}


def test_every_clip_is_of_the_kind_that_it_is_called() -> None:
    for path in CLIPS.glob("*.*"):
        if path.suffix != ".json":
            assert container_of(path.read_bytes()) == KINDS[path.suffix]
    assert set(KINDS.values()) == READERS.keys()


@given(st.binary(max_size=40))
def test_any_bytes_are_of_a_kind_or_named(data: bytes) -> None:
    assert container_of(data) in (None, *READERS)
    assert other_kind(data)


@given(st.sampled_from(sorted(CLIPS.glob("*.*"))), st.integers(0, 16))
def test_a_head_that_is_cut_is_of_its_own_kind_or_none(path: Path, size: int) -> None:
    data = path.read_bytes()
    assert container_of(data[:size]) in (None, container_of(data))
