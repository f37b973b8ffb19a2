"""Frames made in one step: what the long way would show, or nothing at all; for any messages, in each form."""

import sys
from array import array
from collections.abc import Sequence
from types import ModuleType
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.dialects.openai.frames import json_text
from smg_node.engines.engine import Contract
from smg_node.native.stream_messages import ChunkReader
from support.engines.engine_bench import PB
from support.tools.compiled_forms import form, twins
from support.tools.example_counts import example_count

TEXTS = ["a", " b", '"', None, "", "é", "\u2028", "x\\", "\n", "end"]
ENDING = frozenset({9})
HEAD, TAIL = b"data: {", b"}\n\n"
CACHED = 5


class Said(NamedTuple):
    """A message, as a test means it; `ids` is None for what is no plain chunk."""

    ids: tuple[int, ...] | None
    choice: int = 0
    cached: int = 0

    def message(self) -> bytes:
        pb = PB[Contract.MLX]
        if self.ids is None:
            response = pb.GenerateResponse(complete=pb.GenerateComplete(finish_reason="stop"))
        else:
            chunk = pb.GenerateStreamChunk(
                token_ids=self.ids, index=self.choice, prompt_tokens=7, cached_tokens=self.cached
            )
            response = pb.GenerateResponse(chunk=chunk)
        data: bytes = response.SerializeToString()
        return data


plain = st.lists(st.sampled_from([0, 1, 2, 4, 5, 6, 7, 8]), max_size=3).map(
    lambda ids: Said(tuple(ids))
)
odd = st.tuples(
    st.none() | st.lists(st.integers(0, 12), max_size=3).map(tuple),
    st.sampled_from([0, 0, 0, 1]),
    st.sampled_from([0, CACHED, CACHED + 1]),
).map(lambda said: Said(*said))


@pytest.fixture(params=twins("native.text_fast_path"), ids=form, scope="module")
def made(request: pytest.FixtureRequest) -> ModuleType:
    found: ModuleType = request.param
    return found


def shown(batch: Sequence[Said], room: int, at_once: int) -> list[str] | None:
    """What each message of a batch shows; None where the batch is for the long way."""
    texts = []
    for said in batch:
        if said.ids is None or said.choice or said.cached > CACHED:
            return None
        printed = [TEXTS[one] if one < len(TEXTS) else None for one in said.ids]
        if None in printed or ENDING & set(said.ids):
            return None
        texts.append("".join(text or "" for text in printed))
    if "" in texts or sum(len(said.ids or ()) for said in batch) > min(room, at_once):
        return None
    return texts


@settings(max_examples=example_count(400), deadline=None)
@given(
    batches=st.lists(st.lists(plain | odd, min_size=1, max_size=4), max_size=6),
    most=st.integers(1, 12),
    at_once=st.integers(0, 6) | st.just(sys.maxsize),
)
def test_it_is_all_of_a_batch_as_the_long_way_would_show_it_or_none(
    made: ModuleType, batches: list[list[Said]], most: int, at_once: int
) -> None:
    said, told = array("I"), ["so far"]
    cut = made.CutThrough(
        ChunkReader(part=1, choice=6, prompt=2, cached=4),
        TEXTS,
        ENDING,
        most=most,
        at_once=at_once,
        said=said,
        told=told,
        head=HEAD,
        tail=TAIL,
        text=json_text,
        cached=CACHED,
    )
    ids: list[int] = []
    texts = ["so far"]
    for batch in batches:
        wanted = shown(batch, most - len(ids), at_once)
        frames = cut.take([one.message() for one in batch])
        if wanted is None:
            assert frames == b""
        else:
            assert frames == b"".join(HEAD + json_text(text) + TAIL for text in wanted)
            ids += [one for each in batch for one in each.ids or ()]
            texts += wanted
        assert said.tolist() == ids
        assert told == texts


@settings(max_examples=example_count(200), deadline=None)
@given(data=st.binary(max_size=40))
def test_garbage_is_nothing_for_it(made: ModuleType, data: bytes) -> None:
    said, told = array("I"), ["so far"]
    reader = ChunkReader(part=1, choice=6, prompt=2, cached=4)
    cut = made.CutThrough(
        reader, TEXTS, ENDING, most=9, at_once=9, said=said, told=told, head=HEAD, tail=TAIL, text=json_text, cached=0
    )  # fmt: skip
    frames = cut.take([data, b"\xff" + data])
    assert (frames, said.tolist(), told) == (b"", [], ["so far"])


def test_what_it_shows_goes_to_one_who_may_fall_behind_or_fail(made: ModuleType) -> None:
    got: list[bytes] = []
    said: list[str] = []
    answers = iter((False, True))

    def put(frames: bytes) -> bool:
        got.append(frames)
        if len(got) == 3:
            raise ConnectionResetError("the client is gone")
        return next(answers)

    reader = ChunkReader(part=1, choice=6, prompt=2, cached=4)
    cut = made.CutThrough(
        reader, TEXTS, ENDING, most=9, at_once=9, said=array("I"), told=[], head=HEAD, tail=TAIL, text=json_text, cached=0
    )  # fmt: skip
    cut.to(put, lambda: said.append("mute"))
    one = next(number for number, text in enumerate(TEXTS) if text and number not in ENDING)
    message = Said(ids=(one,)).message()
    assert cut.show([b"garbage"]) is None
    assert (cut.show([message]), cut.behind) == (True, False)
    assert (cut.show([message]), cut.behind) == (False, True)
    assert not said
    with pytest.raises(ConnectionResetError):
        cut.show([message])
    assert said == ["mute"]
    assert got == [HEAD + json_text(TEXTS[one] or "") + TAIL] * 3
