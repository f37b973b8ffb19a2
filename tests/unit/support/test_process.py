"""Processes of tests are found, watched and gone."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.processes.process import Process, ProcessError, reserved_port, running

SLEEPER = (sys.executable, "-u", "-c", "print('port 1234'); import time; time.sleep(600)")
STUBBORN = (
    sys.executable,
    "-u",
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "print('deaf'); time.sleep(600)",
)
# Starts a sleeper as tests do, says its process id, and is then killed without a chance to clean up.
OWNER = """
import sys
from pathlib import Path
from support.processes.process import running
with running([sys.executable, "-c", "import time; time.sleep(600)"], folder=Path(sys.argv[1])) as p:
    print(p.pid, flush=True)
    sys.stdin.read()
"""


def is_running(pid: int) -> bool:
    """Whether `pid` still runs; a zombie, whose new parent has not collected it yet, does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_what_a_process_says_can_be_waited_for(tmp_path: Path) -> None:
    with running(SLEEPER, folder=tmp_path / "run") as process:
        assert process.wait_for(r"port (\d+)", 30).group(1) == "1234"
        assert process.ended() is None
        assert is_running(process.pid)
    assert process.ended() is not None
    assert not is_running(process.pid)


def test_a_process_that_ends_early_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    command = (sys.executable, "-c", "import sys; sys.exit('no such model')")
    with (
        running(command, folder=tmp_path) as process,
        pytest.raises(ProcessError, match=r"status 1 before (?s:.*)no such model"),
    ):
        process.wait_for("ready", 30)


def test_waiting_has_an_end(tmp_path: Path) -> None:
    with running(SLEEPER, folder=tmp_path) as process:
        process.wait_for("port", 30)
        with pytest.raises(ProcessError, match="not ready within"):
            process.wait_until(lambda: False, "ready", 0.05)
        with pytest.raises(ProcessError, match="not ended within"):
            process.wait(0.05)


def test_the_process_id_is_that_of_the_program_itself(tmp_path: Path) -> None:
    command = (sys.executable, "-u", "-c", "import os; print('I am', os.getpid())")
    with running(command, folder=tmp_path) as process:
        assert process.wait(30) == 0
        assert process.said() == f"I am {process.pid}\n"


def test_a_process_that_ignores_the_polite_signal_is_stopped_all_the_same(tmp_path: Path) -> None:
    with running(STUBBORN, folder=tmp_path, grace_s=0.1) as process:
        process.wait_for("deaf", 30)
    assert process.ended() == -signal.SIGKILL


def test_it_starts_in_its_own_folder_with_its_own_environment(tmp_path: Path) -> None:
    code = "import os; print(os.getcwd(), os.environ['SMG_TEST_MARK'])"
    folder = tmp_path / "empty"
    mark = {"SMG_TEST_MARK": "here"}
    with running((sys.executable, "-c", code), folder=folder, environment=mark) as process:
        assert process.wait(30) == 0
        assert process.said().split() == [str(folder), "here"]


def test_it_dies_with_the_test_process_even_if_that_is_killed(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    ) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        assert is_running(pid)
        owner.kill()
        owner.wait()
        give_up_s = time.monotonic() + 30
        while is_running(pid):
            assert time.monotonic() < give_up_s, "it outlived the test process"
            time.sleep(0.01)


def test_a_reserved_port_is_given_to_nobody_else_and_can_be_served_on() -> None:
    with reserved_port() as port, socket.socket() as stranger:
        with pytest.raises(OSError, match="in use"):
            stranger.bind(("127.0.0.1", port))
        with socket.socket() as server, socket.socket() as client:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            server.bind(("127.0.0.1", port))
            server.listen()
            client.connect(("127.0.0.1", port))
            accepted, _ = server.accept()
            accepted.close()


# An engine as some are: its worker leaves the session, forgets its parent and ignores SIGTERM.
ENGINE = r"""
import os, signal, subprocess, sys, time
worker = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
worker += "os.write(1, b'worker %d\\n' % os.getpid()); time.sleep(600)"
same = subprocess.Popen([sys.executable, "-c", worker])
apart = subprocess.Popen([sys.executable, "-c", worker], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(1, b"worker %d\n" % os.getpid())
time.sleep(600)
"""


def workers_of(process: Process) -> list[int]:
    """Return the workers of an `ENGINE`, once all three run."""
    found = re.compile(r"worker (\d+)\n")
    process.wait_until(lambda: len(found.findall(process.said())) == 3, "at work", 30)
    pids = [int(pid) for pid in found.findall(process.said())]
    assert [is_running(pid) for pid in pids] == [True] * 3
    return pids


def awaits_end(pids: list[int]) -> None:
    give_up_s = time.monotonic() + 30
    while any(map(is_running, pids)):
        assert time.monotonic() < give_up_s, "they outlived what had started them"
        time.sleep(0.01)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL, None])
def test_what_an_engine_left_behind_ends_with_its_test(
    tmp_path: Path, end: signal.Signals | None
) -> None:
    with running((sys.executable, "-u", "-c", ENGINE), folder=tmp_path) as process:
        pids = workers_of(process)
        if end is not None:
            process.signal(end)
            assert process.wait(30) == -end
    assert [is_running(pid) for pid in pids] == [False] * 3


def test_an_engine_that_is_killed_for_a_restart_leaves_nothing_in_its_way(tmp_path: Path) -> None:
    with running((sys.executable, "-u", "-c", ENGINE), folder=tmp_path) as process:
        pids = workers_of(process)
        process.kill()
        assert process.ended() == -signal.SIGKILL
        assert [is_running(pid) for pid in pids] == [False] * 3


def test_a_family_that_ends_leaves_the_next_one_alone(tmp_path: Path) -> None:
    with running(SLEEPER, folder=tmp_path / "other") as other:
        with running((sys.executable, "-u", "-c", ENGINE), folder=tmp_path) as process:
            workers_of(process)
        assert other.ended() is None


def test_what_an_engine_has_started_dies_with_a_test_process_that_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "engine.py"
    program.write_text(ENGINE)
    owner = OWNER.replace('"-c", "import time; time.sleep(600)"', '"-u", sys.argv[2]')
    with subprocess.Popen(
        [sys.executable, "-c", owner, tmp_path / "run", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    ) as test:
        assert test.stdout is not None
        engine = int(test.stdout.readline())
        log = tmp_path / "run" / f"{Path(sys.executable).name}.log"
        give_up_s = time.monotonic() + 30
        while log.read_text().count("worker") < 3:
            assert time.monotonic() < give_up_s
            time.sleep(0.01)
        pids = [int(line.split()[1]) for line in log.read_text().splitlines()]
        test.kill()
        test.wait()
        awaits_end([engine, *pids])
