"""Exchanges of pieces: any cut, loss, repetition, order or garbage leaves whole pieces, and the next one ends it."""

from collections import deque
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.sync.exchange.exchange_frames import (
    CHUNK_BYTES_MAX,
    REQUEST_PIECES_MAX,
    Asked,
    Declined,
    Done,
    Frame,
    Holdings,
    Novel,
    Request,
    Update,
)
from smg_mesh.sync.exchange.exchange_machine import Exchange, ExchangeError, Rows
from smg_mesh.sync.exchange.piece_interface import REGISTERS, PieceState
from support.state.exchanges import claims, converse, converse_through, opening, side, sides, take
from support.state.fake_pieces import Entry, FakePieces, union

NAMES = ["audit/1", "settings/1", "settings/2", "workers/1", "workers/2"]
SIZES = [0, 10, 40_000, CHUNK_BYTES_MAX, 150_000]

entries = st.dictionaries(
    st.sampled_from(["k1", "k2", "k3"]),
    st.tuples(st.integers(1, 3), st.sampled_from(SIZES)),
    max_size=3,
)
states = st.fixed_dictionaries(
    {"held": st.dictionaries(st.sampled_from(NAMES), entries), "epoch": st.integers(0, 2)}
)


def made(state: Mapping[str, object], who: bytes) -> FakePieces:
    """Return pieces; one version of one key has one value wherever it is."""
    pieces = FakePieces()
    held, epoch = state["held"], state["epoch"]
    assert isinstance(held, dict)
    assert isinstance(epoch, int)
    for number, (name, keys) in enumerate(held.items()):
        for key, (version, size) in keys.items():
            own = f"{key}{who.decode()}"
            pieces.put(name, own, who * size, version=version)
        if number % 2:
            pieces.move(name, epoch)
    pieces.put(REGISTERS, f"load/{who.decode()}", b"1")
    return pieces


def converged(*many: FakePieces) -> bool:
    everything = union(*many)
    return all(pieces.documents() == everything for pieces in many)


@given(states, states, st.booleans(), st.integers(0, 30), st.integers(0, 20))
def test_a_cut_anywhere_leaves_whole_pieces_and_the_next_exchange_ends_it(
    left: Mapping[str, object],
    right: Mapping[str, object],
    full: bool,
    cut: int,
    deeds: int,
) -> None:
    mine, theirs = made(left, b"l"), made(right, b"r")
    both = union(mine, theirs)
    converse(*sides(mine, theirs, full=full), frames_max=cut)
    _leave_in_the_middle(mine, theirs, deeds)
    for name, held in (*mine.documents().items(), *theirs.documents().items()):
        assert all(entry == both[name][key] for key, entry in held.items())
    converse(*sides(mine, theirs, full=full))
    assert converged(mine, theirs)
    assert mine.documents() == both
    assert mine.digest() == theirs.digest()
    assert (mine.held[REGISTERS] == theirs.held[REGISTERS]) == full


def _leave_in_the_middle(mine: FakePieces, theirs: FakePieces, deeds: int) -> None:
    """Begin another exchange and stop in the middle of what the answerer has to do."""
    opener, answerer = sides(mine, theirs)
    _, sent = take(answerer, opener.begin()[0])
    for frame in sent:
        _, asked = take(opener, frame)
        for request in asked:
            if isinstance(request, Request):
                take(answerer, request, deeds_max=deeds)


@given(states, states, st.booleans(), st.integers(0, 5))
def test_both_sides_end_with_the_same_through_any_buffers(
    left: Mapping[str, object], right: Mapping[str, object], full: bool, room: int
) -> None:
    mine, theirs = made(left, b"l"), made(right, b"r")
    opener, answerer = sides(mine, theirs, full=full)
    converse_through(opener, answerer, room=room)
    assert converged(mine, theirs)
    assert opener.full == answerer.full == full
    if full:
        assert mine.held[REGISTERS] == theirs.held[REGISTERS]


@given(
    states,
    states,
    st.lists(
        st.tuples(st.integers(0, 30), st.sampled_from(["lose", "twice", "swap", "novel"])),
        max_size=3,
    ),
)
def test_frames_lost_repeated_or_swapped_end_it_or_change_nothing(
    left: Mapping[str, object],
    right: Mapping[str, object],
    harm: list[tuple[int, str]],
) -> None:
    mine, theirs = made(left, b"l"), made(right, b"r")
    both = union(mine, theirs)
    pair = sides(mine, theirs)
    inbox: tuple[deque[Frame], deque[Frame]] = (deque(), deque(pair[0].begin()))
    at = 0
    try:
        while inbox[0] or inbox[1]:
            me = 0 if inbox[0] else 1
            for when, what in harm:
                if when == at:
                    _harm(inbox[me], what)
            at += 1
            if inbox[me]:
                inbox[1 - me].extend(take(pair[me], inbox[me].popleft())[1])
    except ExchangeError as error:
        reason = error.reason
    else:
        reason = "order"
    assert reason in ("order", "size")
    for name, held in (*mine.documents().items(), *theirs.documents().items()):
        assert all(entry == both[name][key] for key, entry in held.items())
    converse(*sides(mine, theirs))
    assert mine.documents() == theirs.documents() == both


def _harm(inbox: deque[Frame], what: str) -> None:
    match what:
        case "lose":
            inbox.popleft()
        case "twice":
            inbox.appendleft(inbox[0])
        case "swap":
            inbox.rotate(1)
        case _:
            inbox.appendleft(Novel(ignorable=True))


@given(
    st.lists(states, min_size=3, max_size=3),
    st.lists(st.integers(0, 5), max_size=120),
)
def test_exchanges_at_the_same_time_disturb_each_other_in_nothing(
    held: list[Mapping[str, object]], order: list[int]
) -> None:
    """Three nodes, three exchanges, and whichever has something to read goes on."""
    nodes = [made(state, who) for state, who in zip(held, (b"l", b"m", b"r"), strict=True)]
    everything = union(*nodes)
    pairs = [(0, 1), (1, 2), (2, 0)]
    machines: list[Exchange] = []
    for a, b in pairs:
        machines.append(side("abc"[a], nodes[a], opener=True))
        machines.append(side("abc"[b], nodes[b], opener=False))
    inboxes: list[deque[Frame]] = [deque() for _ in machines]
    for number in (0, 2, 4):
        inboxes[number + 1].extend(machines[number].begin())
    choices = iter(order)
    while any(inboxes):
        wanted = next(choices, 0)
        ready = [number for number, inbox in enumerate(inboxes) if inbox]
        me = ready[wanted % len(ready)]
        inboxes[me ^ 1].extend(take(machines[me], inboxes[me].popleft())[1])
    assert all(machine.done for machine in machines)
    for _ in range(2):
        for a, b in pairs:
            converse(*sides(nodes[a], nodes[b]))
    assert all(node.documents() == everything for node in nodes)
    assert len({node.digest() for node in nodes}) == 1


# ── Garbage ──────────────────────────────────────────────────────────────────

names = st.sampled_from([*NAMES[:3], REGISTERS, "", "no name", "x" * 65, "é"])
epochs = st.sampled_from([0, 0, 0, 1, 2, -1, 1 << 32])
chunks = st.sampled_from(
    [b"", b"\x80", b"\xc1", b"x" * 100, bytes(CHUNK_BYTES_MAX), bytes(CHUNK_BYTES_MAX + 1)]
)
pieces_of = st.builds(
    PieceState,
    names,
    epochs,
    st.sampled_from([bytes(16), b"y" * 16, b""]),
    st.integers(-1, 1 << 40),
)
frames: st.SearchStrategy[Frame] = st.one_of(
    st.just(opening("b", full=True, pieces=True)),
    st.just(Rows((), last=True)),
    st.just(Rows(tuple(claims(2)), last=False)),
    st.builds(Novel, ignorable=st.just(True)),
    st.builds(
        Holdings,
        st.lists(pieces_of, max_size=4, unique_by=lambda piece: piece.name).map(
            lambda listed: tuple(sorted(listed, key=lambda piece: piece.name))
        ),
        st.booleans(),
    ),
    st.just(Holdings((PieceState("settings/1", 1, b"z" * 16, 5),), last=True)),
    st.builds(
        Request,
        st.lists(st.builds(Asked, names, epochs, chunks), max_size=REQUEST_PIECES_MAX + 1).map(
            tuple
        ),
    ),
    st.builds(Update, names, epochs, st.sampled_from([b"", b"", b"\x80"]), chunks, st.booleans()),
    st.builds(Declined, names, epochs),
    st.builds(Done, st.booleans()),
)


@given(st.lists(frames, max_size=30), st.booleans(), st.booleans())
def test_whatever_a_stranger_says_is_refused_or_moves_on(
    said: list[Frame], opener: bool, rows: bool
) -> None:
    pieces = FakePieces(*NAMES)
    before: Mapping[str, Mapping[str, Entry]] = {
        name: dict(held) for name, held in pieces.documents().items()
    }
    machine = side("a", pieces, opener=opener, rows=claims(3) if rows else None)
    sent: list[Frame] = list(machine.begin())
    heard: list[Update] = []
    reason = ""
    for frame in [opening("b", pieces=True), *said]:
        was_done = machine.done
        try:
            _, answers = take(machine, frame)
        except ExchangeError as error:
            reason = error.reason
            break
        assert not was_done, "nothing is taken after the end"
        sent += answers
        heard += [frame] if isinstance(frame, Update) else []
    assert reason in ("", "order", "size", "wire")
    assert not (machine.done and reason)
    assert machine.refused is None or machine.refused.reason == "state"
    whole = [frame for frame in heard if frame.last]
    assert len(pieces.merged) <= len(whole), "only whole pieces are merged"
    for name, held in before.items():
        assert pieces.held[name].items() >= held.items(), "and nothing is lost"
    for sending in sent:
        if isinstance(sending, Request):
            assert not {one.name for one in sending.pieces} - {*NAMES, *(n for n in _listed(said))}


def _listed(said: list[Frame]) -> list[str]:
    return [piece.name for frame in said if isinstance(frame, Holdings) for piece in frame.pieces]
