"""Programs that are forks end, print and die as those that are started by themselves."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.processes.process import running
from support.processes.program_forks import ForkedProgram, is_forkable, program_server

BIN = Path(sys.executable).parent
LISTEN = ("--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--data-dir", "data")
END_S = 60.0


def begin(folder: Path, words: Sequence[str], **environment: str) -> ForkedProgram:
    program, *rest = words
    return program_server().start(
        [str(BIN / program), *rest],
        folder=folder,
        environment={**os.environ, **environment},
        out=folder / "out",
        err=folder / "err",
    )


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize(
    "words",
    [
        ["smg-node", "--version"],
        ["smg-admin", "--version"],
        ["smg-admin", "nonsense"],
        ["smg-node", "--nonsense", "1"],
        ["smg-node", "--check"],
        ["smg-chaos", "nonsense"],
    ],
    ids=" ".join,
)
def test_a_fork_prints_and_ends_as_the_program_started_by_itself(
    words: list[str], tmp_path: Path
) -> None:
    program, *rest = words
    alone = subprocess.run(
        [BIN / program, *rest], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    fork = begin(tmp_path, words)
    code = fork.wait(END_S)
    said = [(tmp_path / name).read_text(encoding="utf-8") for name in ("out", "err")]
    assert (code, *said) == (alone.returncode, alone.stdout, alone.stderr)


def test_it_has_the_environment_and_the_folder_that_it_was_given(tmp_path: Path) -> None:
    url = "http://127.0.0.1:9"
    assert begin(tmp_path, ["smg-admin", "status"], SMG_ADMIN_URL=url).wait(END_S) == 1
    assert url in (tmp_path / "err").read_text(encoding="utf-8")
    words = ["smg-admin", "cluster", "keyring", "generate", "--out", "key"]
    assert begin(tmp_path, words).wait(END_S) == 0
    assert (tmp_path / "key").exists()


def test_it_is_signalled_by_its_own_id_in_a_session_of_its_own(tmp_path: Path) -> None:
    with running([BIN / "smg-node", *LISTEN], folder=tmp_path) as node:
        node.wait_for("listening on", END_S)
        assert node.ended() is None
        assert os.getsid(node.pid) == node.pid
        node.signal(signal.SIGKILL)
        assert node.wait(END_S) == -signal.SIGKILL
        node.signal(signal.SIGTERM)  # which nobody gets any more


def test_waiting_for_one_that_goes_on_takes_no_longer_than_asked_for(tmp_path: Path) -> None:
    program = begin(tmp_path, ["smg-node", *LISTEN])
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            program.wait(0.05)
        assert program.poll() is None
    finally:
        program.kill()
    assert program.wait(END_S) == -signal.SIGKILL


# Starts a node as tests do, says its process id, and is then killed without a chance to clean up.
OWNER = """
import sys
from pathlib import Path
from support.processes.process import running
words = ["--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--data-dir", "data"]
with running([Path(sys.executable).with_name("smg-node"), *words], folder=Path(sys.argv[1])) as node:
    node.wait_for("listening on", 300)
    print(node.pid, flush=True)
    sys.stdin.read()
"""


def test_it_dies_with_the_tests_that_started_it(tmp_path: Path) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        assert is_running(pid)
        owner.kill()
        owner.wait()
    give_up_s = time.monotonic() + END_S
    while is_running(pid):
        assert time.monotonic() < give_up_s
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("command", "forkable"),
    [
        ([str(BIN / "smg-node"), "--demo"], True),
        ([str(BIN / "smg-admin")], True),
        (["/somewhere/else/smg-node"], False),
        ([sys.executable, "-m", "smg_node"], False),
    ],
)
def test_only_what_is_installed_beside_this_interpreter_is_a_fork(
    command: list[str], forkable: bool
) -> None:
    assert is_forkable(command) is forkable
