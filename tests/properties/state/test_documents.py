"""Any history of writes, losses, cuts, restarts, deaths and epochs ends with all replicas equal."""

from collections.abc import Sequence
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from smg_mesh.crdt.documents.document import DocumentError
from support.state.document_world import (
    DocumentWorld,
    Node,
    Word,
    expected_conflicts,
    expected_winner,
)
from support.tools.example_counts import example_count

NAMES = ["a", "b", "c", "d"]
KEYS = ["x", "y", "z"]
names = st.sampled_from(NAMES)
keys = st.sampled_from(KEYS)
places = st.integers(0, 1000)

steps = st.one_of(
    st.tuples(st.just("put"), names, keys),
    st.tuples(st.just("put"), names, keys),
    st.tuples(st.just("remove"), names, keys),
    st.tuples(st.just("deliver"), places),
    st.tuples(st.just("deliver"), places),
    st.tuples(st.just("deliver_all")),
    st.tuples(st.just("twice"), places),
    st.tuples(st.just("lose"), places),
    st.tuples(st.just("exchange"), names, names),
    st.tuples(st.just("half"), names, names),
    st.tuples(st.just("tend"), names),
    st.tuples(st.just("pass"), st.sampled_from([1, 20, 1_000, 40_000, 70_000])),
    st.tuples(st.just("save"), names),
    st.tuples(st.just("restart"), names, st.booleans()),
    st.tuples(st.just("stop"), names),
    st.tuples(st.just("cut"), st.sampled_from([(0, 0, 0, 0), (0, 0, 1, 1), (0, 1, 0, 1)])),
)
Step = tuple[object, ...]
histories = st.lists(steps, max_size=60)


def act(world: DocumentWorld, step: Step, serial: int) -> None:
    """Do one step of a history; what cannot be done now is nothing."""
    match step:
        case ("pass", int(ms)):
            world.now_ms += ms
        case ("cut", tuple(sides)):
            world.sides = dict(zip(NAMES, sides, strict=True))
        case ("restart", str(name), bool(keeps_disk)):
            world.restart(name, keeps_disk=keeps_disk)
        case ("exchange", str(one), str(other)) if one != other:
            world.exchange(one, other)
        case ("half", str(one), str(other)) if one != other and world[one].up and world[other].up:
            half_an_exchange(world, one, other)
        case ("deliver_all",):
            world.deliver_all()
        case (str(verb), int(place)) if world.letters:
            post(world, verb, place % len(world.letters))
        case (str(verb), str(name), *rest) if world[name].up:
            do(world, verb, name, rest, b"%d" % serial)


def post(world: DocumentWorld, verb: str, place: int) -> None:
    """Something happens to a letter."""
    letter = world.letters[place]
    if verb != "twice":
        world.letters.pop(place)
    if verb != "lose":
        world.deliver(letter)


def do(world: DocumentWorld, verb: str, name: str, keys: Sequence[object], value: bytes) -> None:
    """One node does something."""
    node = world[name]
    if verb == "tend":
        node.tend()
    elif verb == "save":
        world.save(name)
    elif verb == "stop" and len(world.up) > 1:
        node.up = False
    elif verb in ("put", "remove"):
        node.write(str(keys[0]), value if verb == "put" else None)


def half_an_exchange(world: DocumentWorld, opener: str, answerer: str) -> None:
    """One side has merged when the conversation breaks."""
    if not world.reach(opener, answerer):
        return
    left, right = world[opener].registers, world[answerer].registers
    epoch = max(left.epoch, right.epoch)
    left.merge(epoch, right.missing(epoch, left.summary(epoch)))


def same(world: DocumentWorld) -> Node:
    """All that are up hold the same; return one of them."""
    first, *others = world.up
    for other in others:
        assert other.registers.epoch == first.registers.epoch
        assert other.registers.digest == first.registers.digest
        assert other.held() == first.held()
        assert other.conflicts() == first.conflicts()
    return first


@settings(max_examples=example_count(300), deadline=None)
@given(histories, st.integers(0, 2**32))
@example([("remove", "a", "x"), ("remove", "b", "x")], 0)
def test_all_replicas_end_equal_and_nothing_held_is_lost_or_comes_back(
    history: list[Step], seed: int
) -> None:
    world = DocumentWorld(len(NAMES), seed=seed)
    for serial, step in enumerate(history):
        act(world, step, serial)
    words = world.words()
    # What waits for a predecessor is held, and not seen yet; who starts anew has forgotten what it had
    # seen, so that a conflict that was settled may be shown once more.
    plain = not any(step[0] == "restart" for step in history)
    plain = plain and not any(node.registers.pending for node in world.up)
    world.settle()
    node = same(world)
    held, conflicts = node.held(), node.conflicts()
    for key, said in words.items():
        winner, counts = expected_winner(said), held.get(key)
        assert winner is not None
        assert counts is not None
        shown: list[Word] = [(other.owner, other.entry) for other in conflicts.get(key, [])]
        if plain:
            assert (counts.owner, counts.entry) == winner
            assert sorted(shown, key=str) == sorted(expected_conflicts(said), key=str)
        else:
            assert counts.order >= (winner[1].hlc, winner[0])
            assert {*shown, (counts.owner, counts.entry)} <= world.written
    assert held.keys() >= words.keys()
    for peer in world.up:
        assert peer.registers._holding.left is None
        assert not peer.registers._holding.crowded


@settings(max_examples=example_count(150), deadline=None)
@given(histories, st.integers(0, 2**32), st.lists(st.tuples(names, st.integers(1, 4)), max_size=12))
def test_garbage_and_mutated_updates_raise_one_error_and_leave_replicas_that_agree(
    history: list[Step], seed: int, mutations: list[tuple[str, int]]
) -> None:
    world = DocumentWorld(len(NAMES), seed=seed)
    rng = Random(seed)
    for serial, step in enumerate(history):
        act(world, step, serial)
        if mutations and world.letters and rng.random() < 0.3:
            name, count = mutations.pop()
            if world[name].up:
                hear_mutated(world, name, count, rng)
    world.settle(rounds=120)
    same(world)


def hear_mutated(world: DocumentWorld, name: str, count: int, rng: Random) -> None:
    said = rng.choice(world.letters).written
    update = bytearray(said.update)
    for _ in range(count):
        place = rng.randrange(len(update) + 1)
        if place < len(update) and rng.random() < 0.7:
            update[place] = rng.getrandbits(8)
        else:
            update[place:place] = rng.randbytes(2)
    registers = world[name].registers
    try:
        if rng.random() < 0.7:
            registers.hear(bytes(update), said.client, said.upto, registers.epoch)
        else:
            registers.merge(registers.epoch, bytes(update))
    except DocumentError:
        pass


@settings(max_examples=example_count(300), deadline=None)
@given(
    st.binary(max_size=300),
    st.integers(-3, 2**50),
    st.sampled_from(["hear", "summary", "missing", "merge", "load"]),
)
@example(b"", 0, "merge")
@example(b"\x94\x01\x90\xc4\x01\x01\xc3", 1, "merge")
def test_any_bytes_are_taken_or_refused_with_one_error(data: bytes, epoch: int, door: str) -> None:
    world = DocumentWorld(1)
    world["a"].write("x", b"1")
    registers = world["a"].registers
    try:
        if door == "hear":
            registers.hear(data, 1, 1, epoch)
        elif door == "summary":
            registers.summary(epoch)
        elif door == "missing":
            registers.missing(epoch, data)
        elif door == "merge":
            registers.merge(epoch, data)
        else:
            registers.load(data)
    except DocumentError:
        pass
    assert world["a"].values() == {"x": b"1"}
    world["a"].write("x", b"2")
    assert world["a"].values() == {"x": b"2"}
