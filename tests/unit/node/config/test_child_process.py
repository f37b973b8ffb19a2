import subprocess
import sys
from typing import Final

import pytest

HEAD: Final = """
import os, signal, sys
from smg_node.config.child_process import ChildProcess

def work():
    {work}

child = ChildProcess(work)
# In one piece, because the child may write at the same time.
sys.stdout.write("meanwhile\\n")
sys.stdout.flush()
try:
    print("result", child.result())
except ChildProcessError as error:
    print("error", error)
"""


def apart(work: str) -> tuple[list[str], str]:
    """Return what a program prints that has `work` done apart: its lines, and its errors."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD.format(work=work)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return sorted(done.stdout.splitlines()), done.stderr


@pytest.mark.parametrize(
    ("work", "lines"),
    [
        ("return {'a': [1, 2]}", ["meanwhile", "result {'a': [1, 2]}"]),
        ("return 'x' * 300_000", ["meanwhile", "result " + "x" * 300_000]),
        ("return 2", ["meanwhile", "result 2"]),
        ("return 0", ["meanwhile", "result 0"]),
        ("sys.stdout.write('said\\n'); return 0", ["meanwhile", "result 0", "said"]),
        (
            "os.kill(os.getpid(), signal.SIGKILL)",
            ["error the child process was killed by signal 9", "meanwhile"],
        ),
        ("os._exit(7)", ["meanwhile", "result 7"]),
    ],
)
def test_the_parent_gets_what_the_child_returns(work: str, lines: list[str]) -> None:
    said, errors = apart(work)
    assert said == lines
    assert errors == ""


@pytest.mark.parametrize("mistake", ["ValueError('a bug')", "SystemExit(5)", "KeyboardInterrupt()"])
def test_a_mistake_in_the_child_is_told_and_stays_there(mistake: str) -> None:
    said, errors = apart(f"raise {mistake}")
    assert said == ["meanwhile", "result 1"]
    assert mistake.partition("(")[0] in errors
    assert errors.count("Traceback") <= 1


def test_a_result_that_cannot_travel_is_a_mistake() -> None:
    said, errors = apart("return lambda: 1")
    assert said == ["meanwhile", "result 1"]
    assert "pickle" in errors
