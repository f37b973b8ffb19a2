from collections.abc import Mapping

from smg_mesh.state.workers.statement_reader import Statements
from support.state.register_world import RegisterWorld, Rumor


def decode(content: bytes) -> Mapping[str, int]:
    """Read `w1=5 w2=7`."""
    pairs = [pair.split("=") for pair in content.decode().split()]
    return {worker_id: int(number) for worker_id, number in pairs}


class Scene:
    """One speaker, one listener, and every saying of the speaker by its number."""

    def __init__(self) -> None:
        self.world = RegisterWorld("a", "b")
        self.world.deliver = lambda rumor, to: False
        self.changes: list[tuple[str, int | None, int | None]] = []
        self.settled: list[list[str]] = []
        self.statements = Statements(
            self.world["b"].bound,
            "k",
            "b",
            decode=decode,
            changed=lambda *change: self.changes.append(change),
            settled=self.settled.append,
        )

    def say(self, key: str, content: str) -> Rumor:
        """Let the speaker say something, and return what nobody heard yet."""
        self.world.pass_time(150)
        self.world["a"].bound.set("k", key, content.encode(), ttl_ms=60_000)
        return self.world["a"].said[-1]

    def hear(self, *rumors: Rumor) -> dict[str, int]:
        """Let the listener hear, and return what counts for it then."""
        for rumor in rumors:
            self.world["b"].hear(rumor)
        found: dict[str, int] = {}
        for worker_id in ("w1", "w2", "w3"):
            about = self.statements.about(worker_id)
            assert about.keys() <= {"a"}
            if "a" in about:
                found[worker_id] = about["a"].values[worker_id]
        return found


def test_only_what_differs_is_told() -> None:
    scene = Scene()
    assert scene.hear(scene.say("0", "w1=1 w2=2")) == {"w1": 1, "w2": 2}
    assert scene.hear(scene.say("0", "w2=5 w3=3")) == {"w2": 5, "w3": 3}
    assert scene.hear(scene.say("0", "w2=5 w3=3")) == {"w2": 5, "w3": 3}
    assert scene.changes == [
        ("w1", None, 1),
        ("w2", None, 2),
        ("w1", 1, None),
        ("w2", 2, 5),
        ("w3", None, 3),
    ]
    assert scene.settled == [["w1", "w2"], ["w1", "w2", "w3"]]


def test_of_two_registers_about_one_worker_the_later_counts_whichever_comes_last() -> None:
    scene = Scene()
    earlier, later = scene.say("0", "w1=1"), scene.say("1", "w1=2")
    assert scene.hear(later) == {"w1": 2}
    assert scene.hear(earlier) == {"w1": 2}
    assert scene.changes == [("w1", None, 2)]
    scene = Scene()
    earlier, later = scene.say("0", "w1=1"), scene.say("1", "w1=2")
    assert scene.hear(earlier, later) == {"w1": 2}
    assert scene.changes == [("w1", None, 1), ("w1", 1, 2)]


def test_a_register_that_gave_way_counts_again_when_it_is_said_again_unchanged() -> None:
    scene = Scene()
    scene.hear(scene.say("0", "w1=1"))
    scene.hear(scene.say("1", "w1=2"))
    assert scene.hear(scene.say("1", "w2=2")) == {"w2": 2}
    assert scene.hear(scene.say("0", "w1=1")) == {"w1": 1, "w2": 2}


def test_a_late_register_that_gave_way_at_once_counts_when_it_is_said_again() -> None:
    scene = Scene()
    earlier = scene.say("0", "w1=1")
    scene.hear(scene.say("1", "w1=2"), earlier)
    scene.hear(scene.say("1", "w2=2"))
    assert scene.hear(scene.say("0", "w1=1")) == {"w1": 1, "w2": 2}


def test_what_gave_way_takes_nothing_with_it_when_it_ends() -> None:
    scene = Scene()
    scene.hear(scene.say("0", "w1=1 w3=3"), scene.say("1", "w1=2"))
    assert scene.hear(scene.say("0", "w3=4")) == {"w1": 2, "w3": 4}
    scene.world["a"].bound.clear("k", "0")
    scene.world.pass_time(150)
    assert scene.hear(scene.world["a"].said[-1]) == {"w1": 2}
    assert scene.statements.speakers == 1
    scene.world.pass_time(61_000, step_ms=1_000)
    assert scene.hear() == {}
    assert scene.statements.speakers == 0


def test_what_makes_no_sense_says_nothing_until_it_makes_sense_again() -> None:
    scene = Scene()
    scene.hear(scene.say("0", "w1=1"))
    assert scene.hear(scene.say("0", "w1=x")) == {}
    assert scene.statements.garbage == 1
    assert scene.hear(scene.say("0", "w1=1")) == {"w1": 1}


def test_what_was_said_before_there_was_a_listener_counts() -> None:
    scene = Scene()
    scene.hear(scene.say("0", "w1=1"))
    late = Statements(scene.world["b"].bound, "k", "b", decode=decode, changed=lambda *change: None)
    assert late.about("w1").keys() == {"a"}
    own = Statements(scene.world["a"].bound, "k", "a", decode=decode, changed=lambda *change: None)
    assert own.about("w1") == {}
