"""A conversation about pieces in batches and chunks, piece by piece, and cut anywhere."""

import pytest

from smg_mesh.sync.exchange.exchange_frames import (
    BATCH_BYTES_MAX,
    CHUNK_BYTES_MAX,
    HOLDINGS_MAX,
    REQUEST_PIECES_MAX,
    Frame,
    Holdings,
    Request,
    Update,
)
from smg_mesh.sync.exchange.piece_interface import PIECES_MAX, UPDATE_BYTES_MAX
from support.state.exchanges import (
    Talk,
    claims,
    converse,
    converse_through,
    opening,
    side,
    sides,
    talk_over,
)
from support.state.fake_pieces import FakePieces, names, union

# ── Batches and chunks ───────────────────────────────────────────────────────


def test_a_request_is_for_few_pieces() -> None:
    said = talk_over(FakePieces(), FakePieces(*names(50)))
    counts = [len(frame.pieces) for _, frame in said.frames if isinstance(frame, Request)]
    assert counts == [REQUEST_PIECES_MAX, REQUEST_PIECES_MAX, REQUEST_PIECES_MAX, 2]


def test_a_request_is_for_few_bytes_or_for_one_piece() -> None:
    theirs = FakePieces(*names(9), size=40_000)
    theirs.put("settings/4", "big", bytes(3 * BATCH_BYTES_MAX))
    said = talk_over(FakePieces(), theirs)
    requests = [frame for _, frame in said.frames if isinstance(frame, Request)]
    assert [len(frame.pieces) for frame in requests] == [3, 1, 1, 3, 1]


@pytest.mark.parametrize(
    "size", [0, 1, CHUNK_BYTES_MAX - 1, CHUNK_BYTES_MAX, CHUNK_BYTES_MAX + 1, UPDATE_BYTES_MAX]
)
def test_an_update_of_any_size_arrives_whole_in_chunks(size: int) -> None:
    class Plain(FakePieces):
        def missing(self, name: str, epoch: int, summary: bytes) -> bytes:
            return b"u" * size

        def merge(self, name: str, epoch: int, update: bytes, *, peer: str) -> None:
            self.merged.append((peer, name, len(update)))

    mine, theirs = Plain("settings/1", prefix="a"), Plain("settings/1", prefix="b")
    said = talk_over(mine, theirs)
    for pieces, who, peer in ((mine, "answerer", "b"), (theirs, "opener", "a")):
        chunks = [frame for by, frame in said.frames if isinstance(frame, Update) and by == who]
        assert pieces.merged == ([(peer, "settings/1", size)] if size else [])
        assert sum(len(frame.chunk) for frame in chunks) == size
        assert [frame.last for frame in chunks] == [False] * (len(chunks) - 1) + [True] * bool(
            chunks
        )
        assert all(len(frame.chunk) == CHUNK_BYTES_MAX for frame in chunks[:-1])


def test_more_holdings_than_fit_into_a_frame_come_in_several() -> None:
    said = talk_over(FakePieces(), FakePieces(*(f"p{number:04}" for number in range(PIECES_MAX))))
    counts = [len(frame.pieces) for _, frame in said.frames if isinstance(frame, Holdings)]
    assert counts == [HOLDINGS_MAX] * 4 + [PIECES_MAX - 4 * HOLDINGS_MAX]


@pytest.mark.parametrize("room", [0, 1, 2, 7])
def test_the_sides_never_both_wait_whatever_the_buffers_between_them(room: int) -> None:
    mine, theirs = FakePieces(*names(40), prefix="a", size=9_000), FakePieces(*names(30), size=80)
    theirs.put("settings/3", "big", bytes(400_000))
    mine.put("settings/3", "large", bytes(300_000))
    both = union(mine, theirs)
    opener = side("a", mine, opener=True, rows=claims(2500, "l"), full=True)
    answerer = side("b", theirs, opener=False, rows=claims(1500, "r"))
    assert converse_through(opener, answerer, room=room) > 0
    assert mine.documents() == theirs.documents() == both


# ── One thing at a time ──────────────────────────────────────────────────────


def counted(pieces: FakePieces) -> int:
    return len(pieces.built) + len(pieces.merged)


def test_one_piece_is_built_or_merged_at_a_time_and_none_on_receiving() -> None:
    mine, theirs = FakePieces(*names(20), prefix="a"), FakePieces(*names(20), prefix="b")
    sides = (side("a", mine, opener=True), side("b", theirs, opener=False))
    said: list[tuple[int, Frame]] = [(1, frame) for frame in sides[0].begin()]
    deeds = 0
    while said:
        me, frame = said.pop(0)
        before = counted(mine) + counted(theirs)
        step = sides[me].receive(frame)
        assert counted(mine) + counted(theirs) == before
        said += [(1 - me, sent) for sent in step.send]
        while step.more:
            before = counted(mine) + counted(theirs)
            step = sides[me].proceed()
            deeds += 1
            assert counted(mine) + counted(theirs) - before <= 1
            said += [(1 - me, sent) for sent in step.send]
    assert counted(mine) + counted(theirs) == 20 * 4
    assert deeds >= 20 * 4


def test_nothing_is_received_before_the_work_is_done() -> None:
    opener = side("a", FakePieces("settings/1"), opener=True)
    opener.receive(opening("b", pieces=True))
    assert opener.receive(Holdings((), last=True)).more
    with pytest.raises(AssertionError):
        opener.receive(Holdings((), last=True))


# ── Cuts ─────────────────────────────────────────────────────────────────────


def pair() -> tuple[FakePieces, FakePieces]:
    mine, theirs = FakePieces(*names(20), prefix="a"), FakePieces(*names(40)[10:], prefix="b")
    theirs.put("settings/30", "big", bytes(150_000))
    mine.put("settings/5", "large", bytes(200_000))
    return mine, theirs


def test_after_a_cut_anywhere_the_next_exchange_goes_on() -> None:
    whole = converse(*sides(*pair()))
    for cut in range(len(whole.frames)):
        mine, theirs = pair()
        both = union(mine, theirs)
        first = converse(*sides(mine, theirs), frames_max=cut)
        second = converse(*sides(mine, theirs))
        assert mine.documents() == theirs.documents() == both, cut
        again = _update_bytes(first) + _update_bytes(second) - _update_bytes(whole)
        # What was under way is sent again: a batch, of which one piece may be larger than all.
        assert again <= BATCH_BYTES_MAX + 200_000, cut


def _update_bytes(said: Talk) -> int:
    return sum(len(frame.chunk) for _, frame in said.frames if isinstance(frame, Update))


def test_a_cut_after_every_single_frame_of_the_rest_still_ends() -> None:
    """The worst network: each exchange gets one frame further than the one before it."""
    mine, theirs = pair()
    both = union(mine, theirs)
    for cut in range(5, 200):
        converse(*sides(mine, theirs), frames_max=cut)
        if mine.digest() == theirs.digest():
            break
    assert mine.documents() == theirs.documents() == both


def test_whole_pieces_are_merged_and_nothing_else() -> None:
    theirs = FakePieces("settings/1")
    theirs.put("settings/1", "big", bytes(200_000))
    mine = FakePieces()
    opener, answerer = sides(mine, theirs)
    for cut in range(4, 7):
        opener, answerer = sides(mine, theirs)
        converse(opener, answerer, frames_max=cut)
        assert mine.documents() == {}
    converse(*sides(mine, theirs))
    assert mine.documents() == theirs.documents()
