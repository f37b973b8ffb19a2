import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from smg_node.discovery.file import source as file_source
from smg_node.discovery.file.look import Read, read_file
from smg_node.discovery.file.options import FileOptions
from smg_node.discovery.file.source import FileSource
from smg_node.discovery.sighting import View

Step = Callable[[], object]


async def watched(options: FileOptions, *steps: Step) -> list[View]:
    """Run a source; carry out a step each time that it sleeps; return the view that held after each."""
    held: list[View] = [View({})]
    after: list[View] = []
    now_s = 100.0
    left = list(steps)

    async def sleep(seconds: float) -> None:
        nonlocal now_s
        after.append(held[-1])
        now_s += seconds
        if not left:
            raise asyncio.CancelledError
        left.pop(0)()

    source = FileSource(options, monotonic_s=lambda: now_s, sleep=sleep)
    with pytest.raises(asyncio.CancelledError):
        await source.run(held.append)
    return after


def endpoints(view: View) -> list[str]:
    return list(view.sightings)


def wait() -> None:
    """Let the time of one sleep pass."""


async def test_a_file_is_read_at_once_and_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "workers.json"
    path.write_text('["a:1"]')
    views = await watched(
        FileOptions(path=str(path)),
        lambda: path.write_text('["a:1", "b:2"]'),
        wait,
        lambda: path.write_text("[]"),
    )
    assert [endpoints(one) for one in views] == [["a:1"], ["a:1", "b:2"], ["a:1", "b:2"], []]
    assert [one.whole_ms for one in views] == [100_000, 101_000, 101_000, 103_000]
    assert all(not one.trouble for one in views)


async def test_a_wrong_or_missing_file_keeps_the_last_good_list(tmp_path: Path) -> None:
    path = tmp_path / "workers.json"
    path.write_text('["a:1"]')
    views = await watched(
        FileOptions(path=str(path)),
        lambda: path.write_text('["a:1",\n "b"]'),
        path.unlink,
        path.mkdir,
        path.rmdir,
        lambda: path.write_text(""),
        lambda: path.write_text('["c:3"]'),
    )
    assert [endpoints(one) for one in views] == [["a:1"]] * 6 + [["c:3"]]
    assert views[1].trouble.startswith("workers.json: line 2: workers[1]: worker URL 'b'")
    assert views[2].trouble.endswith("workers.json: no such file or directory")
    assert views[3].trouble.endswith("it is no plain file")
    assert views[5].trouble.endswith("it is empty; no workers are written as []")
    assert {one.failing_since_ms for one in views[1:6]} == {101_000}
    assert {one.whole_ms for one in views[:6]} == {100_000}
    assert (views[6].trouble, views[6].failing_since_ms, views[6].whole_ms) == ("", 0, 106_000)


async def test_a_file_may_come_after_the_start(tmp_path: Path) -> None:
    path = tmp_path / "workers.json"
    views = await watched(FileOptions(path=str(path)), lambda: path.write_text('["a:1"]'))
    assert (views[0].whole_ms, endpoints(views[0])) == (0, [])
    assert views[0].trouble
    assert endpoints(views[1]) == ["a:1"]


async def test_a_link_that_turns_to_another_file_is_a_change(tmp_path: Path) -> None:
    # As a ConfigMap is mounted: the same size, and times that say nothing.
    for folder, text in (("one", '["a:1"]'), ("two", '["b:1"]')):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "workers.json").write_text(text)
        os.utime(tmp_path / folder / "workers.json", (1, 1))
    link = tmp_path / "data"
    link.symlink_to("one")

    def turn() -> None:
        (tmp_path / "new").symlink_to("two")
        (tmp_path / "new").replace(link)

    views = await watched(FileOptions(path=str(link / "workers.json")), turn)
    assert [endpoints(one) for one in views] == [["a:1"], ["b:1"]]


async def test_a_change_that_leaves_no_trace_is_seen_after_30_seconds(tmp_path: Path) -> None:
    path = tmp_path / "workers.json"
    path.write_text('["a:1"]')
    os.utime(path, (1, 1))

    def change() -> None:
        with path.open("r+") as file:
            file.write('["b:1"]')
        os.utime(path, (1, 1))

    views = await watched(FileOptions(path=str(path)), change, *[wait] * 29)
    assert [endpoints(one) for one in views] == [["a:1"]] * 30 + [["b:1"]]


async def test_a_list_that_does_not_change_is_known_to_be_whole_again(tmp_path: Path) -> None:
    path = tmp_path / "workers.json"
    path.write_text('["a:1"]')
    views = await watched(FileOptions(path=str(path)), *[wait] * 60)
    assert sorted({one.whole_ms for one in views}) == [100_000, 130_000, 160_000]
    assert all(one.sightings is views[0].sightings for one in views), "it is not parsed again"


async def test_no_part_of_a_file_that_is_being_written_is_believed(tmp_path: Path) -> None:
    path = tmp_path / "workers.json"
    before, after = '["old:1"]', '["new:1",\n {"id": "b", "url": "grpc://b.example:50051"}]\n'
    path.write_text(before)

    def cut(end: int) -> Step:
        return lambda: path.write_text(after[:end])

    views = await watched(FileOptions(path=str(path)), *map(cut, range(len(after) + 1)))
    found = [endpoints(one) for one in views]
    assert found == [["old:1"]] * len(after) + [["new:1", "b.example:50051"]] * 2


async def test_no_part_of_a_yaml_file_is_believed_while_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "workers.yaml"
    path.write_text("- old:1\n")
    after = "- new:1\n- b.example:50051\n- c.example:50051\n"

    def cut(end: int) -> Step:
        return lambda: path.write_text(after[:end])

    views = await watched(
        FileOptions(path=str(path)), wait, *map(cut, range(1, len(after) + 1)), wait
    )
    found = [endpoints(one) for one in views]
    assert found[0] == [], "a list that may go on is looked at twice"
    assert found[1:-1] == [["old:1"]] * (len(found) - 2)
    assert found[-1] == ["new:1", "b.example:50051", "c.example:50051"]


async def test_a_file_that_is_seldom_looked_at_is_soon_believed(tmp_path: Path) -> None:
    path = tmp_path / "workers.yaml"
    path.write_text("- a:1\n")
    options = FileOptions(path=str(path), check_interval_s=3600)
    views = await watched(options, wait, lambda: path.write_text("- b:1\n"), wait)
    assert [endpoints(one) for one in views] == [[], ["a:1"], ["a:1"], ["b:1"]]
    assert [one.whole_ms for one in views] == [0, 101_000, 101_000, 3_702_000]


def program(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


async def after_runs(command: Sequence[str], *, runs: int = 1, timeout_s: float = 10.0) -> View:
    options = FileOptions(command=tuple(command), run_timeout_s=timeout_s)
    return (await watched(options, *[wait] * (runs - 1)))[-1]


async def test_a_program_prints_the_same_list() -> None:
    view = await after_runs(program('print(\'["a:1", {"url": "b:2"}]\')'))
    assert endpoints(view) == ["a:1", "b:2"]
    assert view.whole_ms == 100_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "import sys; print('[]'); sys.exit('first\\nkey \\x1b[1m gone\\n')",
            "it ended with status 1: key \\x1b[1m gone",
        ),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "it ended with signal 15"),
        ("print('[')", "it ends too early"),
        ("while True: print('[' * 1_000_000)", "it prints more than 16 MiB"),
        ("import time, sys; print('x', file=sys.stderr, flush=True); time.sleep(60)", "longer"),
    ],
)
async def test_a_program_that_fails_changes_nothing(text: str, said: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    first = f"import os\nif not os.path.exists({str(mark)!r}):\n open({str(mark)!r}, 'w'); print('[\"a:1\"]'); os._exit(0) if print(end='', flush=True) else os._exit(0)\n"
    view = await after_runs(program(first + text), runs=2, timeout_s=3.0)
    assert endpoints(view) == ["a:1"]
    assert said in view.trouble
    assert (view.whole_ms, view.failing_since_ms) == (100_000, 130_000)


async def test_what_is_no_program_is_said() -> None:
    view = await after_runs(["/nothing/there"])
    assert view.trouble == "there: it cannot be run: no such file or directory"
    assert (await after_runs(["a\0b"])).trouble


async def test_what_a_program_has_started_ends_with_it(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    text = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(mark)!r}, 'w').write(str(child.pid))\nprint('[]')\n"
    )
    view = await after_runs(program(text), timeout_s=2.0)
    assert "longer than 2 s" in view.trouble, "its output is still open"
    child = int(mark.read_text())
    for _ in range(500):
        if _has_ended(child):
            return
        await asyncio.sleep(0.01)
    pytest.fail("the child is still there")


def _has_ended(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"


async def test_a_list_that_is_written_between_a_look_and_its_reading_is_not_believed_by_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "workers.yaml"
    path.write_text("- a:1\n- b:2\n")
    reads = 0

    def read_late(named: str) -> Read:
        nonlocal reads
        reads += 1
        if reads == 3:  # after 30 seconds, though nothing changed until a moment ago
            path.write_text("- a:1\n")
        return read_file(named)

    monkeypatch.setattr(file_source, "read_file", read_late)
    complete = [lambda: path.write_text("- a:1\n- b:2\n- c:3\n")]
    views = await watched(FileOptions(path=str(path)), *[wait] * 31, *complete, wait)
    assert reads == 5
    assert [endpoints(one) for one in views[1:33]] == [["a:1", "b:2"]] * 32
    assert endpoints(views[33]) == ["a:1", "b:2", "c:3"]
