import random
from collections.abc import Mapping

from smg_mesh.state.workers.statement_writer import Pace, StatementWriter
from support.state.register_world import RegisterWorld

PACE = Pace(
    apart_ms=200, apart_max_ms=2_000, repeat_ms=1_000, repeat_last_ms=64_000, bytes_per_s=1_000
)


def encode(values: Mapping[str, int]) -> bytes:
    return " ".join(f"{worker_id}={values[worker_id]}" for worker_id in sorted(values)).encode()


class Scene:
    """One node that says numbers about workers, ten of them on a sheet."""

    def __init__(self, *, speakers: int = 1) -> None:
        self.world = RegisterWorld("a")
        self.sheets = StatementWriter(
            self.world["a"].bound,
            "k",
            encode=encode,
            item_bytes=lambda worker_id: 10,
            room_bytes=100,
            pace=PACE,
            speakers=lambda: speakers,
        )

    def pass_time(self, span_ms: int, *, step_ms: int = 50) -> None:
        for _ in range(0, span_ms, step_ms):
            self.world.pass_time(step_ms, step_ms=step_ms)
            self.sheets.say()

    def held(self) -> dict[str, list[str]]:
        """Return which workers are on which sheet, as it was said."""
        return {
            item.key: [pair.split("=")[0] for pair in item.content.decode().split()]
            for item in self.world["a"].bound.items("k")
        }

    def said_ms(self) -> list[int]:
        began_ms = self.world["a"].said[0].at_ms
        return [rumor.at_ms - began_ms for rumor in self.world["a"].said]


def test_a_worker_stays_on_its_sheet_and_only_that_sheet_is_said() -> None:
    scene = Scene()
    for number in range(25):
        scene.sheets.put(f"w{number:02}", 1)
    scene.pass_time(100_000)
    assert [len(workers) for workers in scene.held().values()] == [10, 10, 5]
    scene.world["a"].said.clear()
    assert scene.sheets.put("w13", 2)
    assert not scene.sheets.put("w13", 2)
    scene.sheets.say()
    assert [rumor.key for rumor in scene.world["a"].said] == ["1"]


def test_free_places_are_taken_again_from_the_front_and_empty_sheets_go() -> None:
    scene = Scene()
    for number in range(30):
        scene.sheets.put(f"w{number:02}", 1)
    scene.pass_time(500)
    for number in (3, 14, 5):
        assert scene.sheets.drop(f"w{number:02}")
    assert not scene.sheets.drop("w03")
    for number in range(20, 30):
        scene.sheets.drop(f"w{number:02}")
    for name in ("x1", "x2", "x3", "x4"):
        scene.sheets.put(name, 1)
    scene.pass_time(5_000)
    held = scene.held()
    assert {"x1", "x2"} <= set(held["0"])
    assert "x3" in held["1"]
    assert held["2"] == ["x4"]
    scene.sheets.drop("x4")
    scene.pass_time(5_000)
    assert scene.sheets.count == 2
    assert list(scene.held()) == ["0", "1"]


def test_repeats_come_ever_more_seldom_until_something_changes() -> None:
    scene = Scene()
    scene.sheets.put("w1", 1)
    scene.sheets.say()
    # The last repeat comes after 64 s, so the first is not before four seconds are over.
    scene.pass_time(200_000)
    assert scene.said_ms() == [0, 4_000, 8_000, 24_000, 88_000, 152_000]
    scene.sheets.put("w1", 2)
    scene.sheets.say()
    scene.pass_time(9_000)
    assert scene.said_ms()[6:] == [200_000, 204_000, 208_000]
    assert all(
        item.until_ms > scene.world.now_ms() + 3 * PACE.repeat_last_ms
        for item in scene.world["a"].bound.items("k")
    )


def test_more_speakers_say_the_same_more_seldom() -> None:
    bytes_per_s = []
    for speakers in (1, 10):
        scene = Scene(speakers=speakers)
        for turn in range(200):
            for number in range(20):
                scene.sheets.put(f"w{number:02}", turn)
            scene.sheets.say()
            scene.pass_time(250, step_ms=250)
        rumors = scene.world["a"].said
        bytes_per_s.append(sum(rumor.size_bytes for rumor in rumors) // 50)
    assert 500 < bytes_per_s[0] < 1_100
    # As often as a change must be said in any case.
    assert 100 < bytes_per_s[1] < 250


def test_places_are_kept_right_through_any_history() -> None:
    rng = random.Random(8)
    scene = Scene()
    wanted: dict[str, int] = {}
    for _ in range(3_000):
        worker_id = f"w{rng.randrange(120):03}"
        if rng.random() < 0.5:
            scene.sheets.drop(worker_id)
            wanted.pop(worker_id, None)
        else:
            wanted[worker_id] = rng.randrange(5)
            scene.sheets.put(worker_id, wanted[worker_id])
        if rng.random() < 0.2:
            scene.pass_time(100)
        assert len(scene.sheets) == len(wanted)
        assert scene.sheets.count <= 12
    scene.pass_time(4_000)
    held = [worker_id for workers in scene.held().values() for worker_id in workers]
    assert sorted(held) == sorted(wanted)
    assert sorted(scene.sheets) == sorted(wanted)
    assert all(scene.sheets.get(worker_id) == number for worker_id, number in wanted.items())
    assert scene.sheets.get("never") is None
