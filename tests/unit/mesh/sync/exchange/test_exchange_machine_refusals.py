"""A conversation about pieces with a peer that sends nonsense, or says what it may not say."""

import re
from collections.abc import Callable

import pytest

from smg_mesh.sync.exchange.exchange_frames import (
    CHUNK_BYTES_MAX,
    HOLDINGS_MAX,
    REQUEST_PIECES_MAX,
    SUMMARY_BYTES_MAX,
    Asked,
    Declined,
    Done,
    Frame,
    Holdings,
    Request,
    Update,
)
from smg_mesh.sync.exchange.exchange_machine import Exchange, ExchangeError, Rows
from smg_mesh.sync.exchange.piece_interface import (
    PIECES_MAX,
    UPDATE_BYTES_MAX,
    PieceError,
    PieceState,
)
from support.state.exchanges import (
    claims,
    converse,
    opening,
    side,
    sides,
    take,
    talk_over,
)
from support.state.fake_pieces import FakePieces, names

# ── What cannot be taken ─────────────────────────────────────────────────────


def test_who_could_not_take_a_piece_or_whose_peer_could_not_has_not_everything() -> None:
    for sick in ("a", "b"):
        mine, theirs = FakePieces(*names(3), prefix="a"), FakePieces(*names(3), prefix="b")
        (mine if sick == "a" else theirs).poisoned = frozenset({"settings/1"})
        opener = side("a", mine, opener=True, full=True)
        answerer = side("b", theirs, opener=False)
        converse(opener, answerer)
        assert not (opener if sick == "a" else answerer).full
        assert not answerer.full, "it has heard from the opener"


@pytest.mark.parametrize("who", ["a", "b"])
def test_a_piece_that_cannot_be_taken_is_named_at_the_end_and_the_others_go_through(
    who: str,
) -> None:
    mine, theirs = FakePieces(*names(30), prefix="a"), FakePieces(*names(30), prefix="b")
    sick, well = (mine, theirs) if who == "a" else (theirs, mine)
    sick.poisoned = frozenset({"settings/11", "settings/12"})
    opener, answerer = sides(mine, theirs)
    converse(opener, answerer)
    for machine, suffers in ((opener, who == "a"), (answerer, who == "b")):
        assert machine.done
        assert (machine.refused is not None) == suffers
    refused = opener.refused or answerer.refused
    assert refused is not None
    assert refused.reason == "state"
    assert re.match(r"sent settings/11, which cannot be taken \(update: .*\)", str(refused))
    assert isinstance(refused.__cause__, PieceError)
    same = [name for name in mine.held if mine.held[name] == theirs.held[name]]
    assert sorted(same) == sorted(set(names(30)) - sick.poisoned)
    assert len(well.merged) == (28 if who == "a" else 30), "nothing is owed to who sends nonsense"


def test_a_piece_that_only_a_newer_version_has_is_passed_over_without_harm() -> None:
    for one, other in (("new", "old"), ("old", "new")):
        new = FakePieces("limits/1", "settings/1", prefix="n")
        old = FakePieces("settings/1", prefix="o")
        old.unknown = frozenset({"limits/1"})
        which = {"new": new, "old": old}
        talk_over(which[one], which[other])
        assert old.held["settings/1"] == new.held["settings/1"]
        assert "limits/1" not in old.held


def test_an_update_too_large_is_not_sent_and_named() -> None:
    mine, theirs = FakePieces("settings/1"), FakePieces(*names(3), prefix="b")
    theirs.put("settings/1", "huge", bytes(UPDATE_BYTES_MAX))
    opener, answerer = sides(mine, theirs)
    converse(opener, answerer)
    assert re.match(r"lacks 1048\d\d\d bytes of settings/1, too many", str(answerer.refused))
    assert opener.refused is None
    assert "settings/2" in mine.held


def test_a_summary_too_large_is_not_sent_and_named() -> None:
    mine, theirs = FakePieces("settings/2", keys=30_000, size=0), FakePieces(*names(3), prefix="b")
    opener, answerer = sides(mine, theirs)
    converse(opener, answerer)
    assert re.match(r"asks about settings/2, whose summary has \d+ bytes", str(opener.refused))
    assert sorted(mine.held) == names(3)


def test_a_summary_that_makes_no_sense_is_named() -> None:
    theirs = FakePieces("settings/1")
    answerer = side("b", theirs, opener=False)
    take(answerer, opening("a", pieces=True))
    _, sent = take(answerer, Request((Asked("settings/1", 0, b"\xc1"),)))
    assert sent == [Declined("settings/1", 0)]
    assert answerer.receive(Done()).done
    assert str(answerer.refused).startswith("says it holds of settings/1 what cannot be")


# ── What may not be said ─────────────────────────────────────────────────────


def answering() -> Exchange:
    """Return an answerer that has answered for two pieces, and hears the opener."""
    machine = side("b", FakePieces("settings/1", "settings/2"), opener=False)
    take(machine, opening("a", pieces=True))
    _, sent = take(
        machine, Request((Asked("settings/1", 0, b"\x80"), Asked("settings/2", 0, b"\x80")))
    )
    assert [type(frame) for frame in sent] == [Update, Update]
    return machine


def asking() -> Exchange:
    """Return an opener that has asked for two pieces, and waits for them."""
    machine = side("a", FakePieces("settings/1", "settings/2"), opener=True)
    take(machine, opening("b", pieces=True))
    _, sent = take(machine, Holdings((), last=True))
    assert [type(frame) for frame in sent] == [Request]
    return machine


def listening() -> Exchange:
    """Return an opener that waits for what the answerer holds."""
    machine = side("a", FakePieces("settings/1"), opener=True)
    take(machine, opening("b", pieces=True))
    return machine


def piece(name: str = "settings/1", epoch: int = 0, digest: bytes = bytes(16)) -> PieceState:
    return PieceState(name, epoch, digest, 10)


def update(
    name: str = "settings/1",
    epoch: int = 0,
    *,
    summary: bytes = b"",
    chunk: bytes = b"x",
    last: bool = True,
) -> Update:
    return Update(name, epoch, summary, chunk, last)


LONG = b"x" * CHUNK_BYTES_MAX


@pytest.mark.parametrize(
    ("state", "said", "reason"),
    [
        (listening, [Done()], "order"),
        (listening, [Request((Asked("settings/1", 0, b""),))], "order"),
        (listening, [update()], "order"),
        (listening, [Declined("settings/1", 0)], "order"),
        (listening, [Rows((), last=True)], "order"),
        (listening, [opening("b", pieces=True)], "order"),
        (listening, [Holdings((), last=False)], "size"),
        (listening, [Holdings((piece(),) * (HOLDINGS_MAX + 1), last=True)], "size"),
        (listening, [Holdings((piece("b"), piece("a")), last=True)], "order"),
        (
            listening,
            [Holdings((piece("b"),), last=False), Holdings((piece("b"),), last=True)],
            "order",
        ),
        (listening, [Holdings((piece("no name"),), last=True)], "wire"),
        (listening, [Holdings((piece("x" * 65),), last=True)], "wire"),
        (listening, [Holdings((piece(""),), last=True)], "wire"),
        (listening, [Holdings((piece(epoch=-1),), last=True)], "wire"),
        (listening, [Holdings((piece(epoch=1 << 32),), last=True)], "wire"),
        (listening, [Holdings((piece(digest=b"short"),), last=True)], "wire"),
        (listening, [Holdings((PieceState("a", 0, bytes(16), -1),), last=True)], "wire"),
        (asking, [Holdings((), last=True)], "order"),
        (asking, [update("settings/2")], "order"),
        (asking, [update(epoch=1)], "order"),
        (asking, [update(chunk=b"short", last=False)], "size"),
        (asking, [update(chunk=b"", last=False)], "size"),
        (asking, [update(chunk=LONG + b"x")], "size"),
        (asking, [update(chunk=LONG, last=False)] * 16 + [update()], "size"),
        (asking, [update(summary=bytes(SUMMARY_BYTES_MAX + 1))], "size"),
        (asking, [update(chunk=LONG, last=False), update(summary=b"s")], "order"),
        (asking, [update(chunk=LONG, last=False), update("settings/2")], "order"),
        (asking, [update(chunk=LONG, last=False), Declined("settings/1", 0)], "order"),
        (asking, [Declined("settings/2", 0)], "order"),
        (asking, [Declined("settings/1", -1)], "wire"),
        (asking, [Declined("settings/1", 0), Declined("settings/2", 0), update()], "order"),
        (asking, [Done()], "order"),
        (answering, [Holdings((), last=True)], "order"),
        (answering, [Declined("settings/1", 0)], "order"),
        (answering, [Request(())], "size"),
        (answering, [Request((Asked("settings/1", 0, b""),) * 17)], "size"),
        (answering, [Request((Asked("settings/1", 0, b""),) * 2)], "order"),
        (answering, [Request((Asked("no name", 0, b""),))], "wire"),
        (answering, [Request((Asked("settings/1", 1 << 40, b""),))], "wire"),
        (answering, [Request((Asked("a", 0, bytes(SUMMARY_BYTES_MAX + 1)),))], "size"),
        (answering, [update("settings/3")], "order"),
        (answering, [update(epoch=1)], "order"),
        (answering, [update(summary=b"s")], "order"),
        (answering, [update(chunk=b"short", last=False)], "size"),
        (answering, [update(chunk=LONG, last=False), Done()], "order"),
        (answering, [update(chunk=LONG, last=False), Request((Asked("a", 0, b""),))], "order"),
        (answering, [update(chunk=LONG, last=False), update("settings/2")], "order"),
        (answering, [update("settings/2", chunk=b"\x80"), update()], "order"),
        (answering, [update(chunk=b"\x80"), update(chunk=b"\x80")], "order"),
        (answering, [Rows((), last=True)], "order"),
    ],
)
def test_what_may_not_be_said_ends_it(
    state: Callable[[], Exchange], said: list[Frame], reason: str
) -> None:
    machine = state()
    for frame in said[:-1]:
        take(machine, frame)
    with pytest.raises(ExchangeError) as raised:
        take(machine, said[-1])
    assert raised.value.reason == reason
    assert not machine.done
    with pytest.raises(ExchangeError, match="after the end"):
        machine.receive(said[-1])


@pytest.mark.parametrize(
    "said", [Holdings((), last=True), Request(()), update(), Declined("a", 0), Done()]
)
@pytest.mark.parametrize("opener", [True, False])
def test_who_speaks_of_pieces_to_who_has_none_is_refused(said: Frame, opener: bool) -> None:
    for machine in (
        Exchange(opening("a", full=True), lambda: claims(1), opener=opener),
        side("a", FakePieces("settings/1"), opener=opener, rows=claims(1)),
    ):
        with pytest.raises(ExchangeError, match="out of turn"):
            machine.receive(said)
        assert not machine.done


def test_endless_requests_end_it() -> None:
    machine = answering()
    asked = Request(tuple(Asked(f"settings/{n}", 0, b"\x80") for n in range(REQUEST_PIECES_MAX)))
    for _ in range(3 * PIECES_MAX // REQUEST_PIECES_MAX - 1):
        take(machine, asked)
    with pytest.raises(ExchangeError) as raised:
        take(machine, asked)
    assert raised.value.reason == "size"


def test_endless_holdings_end_it() -> None:
    machine = listening()
    for number in range(PIECES_MAX):
        machine.receive(Holdings((piece(f"p{number:05}"),), last=False))
    with pytest.raises(ExchangeError) as raised:
        machine.receive(Holdings((piece("q"),), last=False))
    assert raised.value.reason == "size"


def test_a_history_too_long_is_no_opening() -> None:
    with pytest.raises(ExchangeError) as raised:
        side("a", FakePieces(), opener=True).receive(opening("b", history=bytes(65)))
    assert raised.value.reason == "wire"
