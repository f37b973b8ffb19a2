"""What is compiled here keeps the same promises as Python, which it is where no compiler was."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]
HERE = Path(__file__).parent
FILES = [
    HERE / "h2",
    *[
        HERE / f"test_{name}.py"
        for name in ("pouring", "reader", "reader_batches", "remote_call", "splice", "watch")
    ],
]


def test_all_of_it_as_python_too() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "support.interpreted", *FILES],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "tests"},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
