"""What is compiled here keeps the same promises as Python, which it is where no compiler was."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]
HERE = Path(__file__).parent
FILES = [
    HERE / "transport" / "h2",
    *[
        HERE / f"{room}/test_{name}.py"
        for room, name in (
            ("contracts", "request_template"),
            ("grpc", "generate_call"),
            ("grpc", "stream_reader"),
            ("grpc", "stream_reader_batches"),
            ("transport", "deadline_queue"),
            ("transport", "message_delivery"),
            ("transport", "stream_timeouts"),
        )
    ],
]


def test_all_of_it_as_python_too() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "support.tools.interpreted_plugin", *FILES],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "tests"},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
