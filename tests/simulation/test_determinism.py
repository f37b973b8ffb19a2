"""One seed is one history, byte for byte, whatever Python's own hashing does."""

import os
import re
import subprocess
import sys

import pytest

COMMANDS = (
    ("--seed", "4", "--nodes", "4", "--sealed"),
    ("--seed", "2", "--scenario", "partition-60s", "--nodes", "5"),
    ("--seed", "1", "--scenario", "state-restart-all"),
    ("--seed", "4", "--scenario", "limits", "--nodes", "3"),
)
LONG = (
    ("--seed", "11", "--nodes", "6"),
    ("--seed", "3", "--scenario", "state-weather", "--nodes", "8"),
    ("--seed", "4", "--scenario", "limits"),
)


def output(hash_seed: str, arguments: tuple[str, ...]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "smg_chaos.cli", "simulate", "--story", *arguments],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "arguments",
    [*COMMANDS, *(pytest.param(words, marks=pytest.mark.long) for words in LONG)],
    ids=" ".join,
)
def test_a_seed_has_one_history_under_every_hash_seed(arguments: tuple[str, ...]) -> None:
    first, other, random = (output(seed, arguments) for seed in ("0", "1", "random"))
    assert first == other == random
    assert re.search(r"^fingerprint [0-9a-f]{32}$", first, re.MULTILINE)
