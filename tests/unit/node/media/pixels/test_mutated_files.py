"""Mutated files of every format give pixels or a refusal with its path: no other error, no warning, bounded memory."""

import random
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from smg_node.core.errors import SmgError
from smg_node.media.pixels.decode import DecodeLimits, decode, read_header
from support.media.mutations import mutated
from support.media.picture_files import FILES

LIMITS = DecodeLimits(pixels_max=1_000_000)
WHERE = "input[0].content[1]"
CODES = {"invalid_image", "image_too_large"}
FORMATS = ("jpeg", "png", "webp", "gif", "bmp", "tiff", "avif")
MEMORY_MAX = 256 << 20
"""What a process that works on such files may come to use beyond what it began with."""


def attack(kind: str, rounds: int, seed: int) -> tuple[int, int]:
    """Return how many of the mutated files of a format were taken, and how many refused."""
    rng = random.Random(f"{kind} {seed}")
    files = [data for name, data in FILES.items() if name.startswith(kind)]
    others = list(FILES.values())
    taken = refused = 0
    for _ in range(rounds):
        error = refusal(mutated(rng.choice(files), rng, others))
        if error is None:
            taken += 1
        else:
            assert error.where == WHERE
            assert error.code in CODES
            assert error.status == 400
            refused += 1
    return taken, refused


def refusal(data: bytes) -> SmgError | None:
    """Return why a file is refused; None where it has the pixels that its header says."""
    try:
        header = read_header(data, LIMITS, WHERE)
        assert 0 < header.width * header.height <= LIMITS.pixels_max
        picture = decode(data, header, WHERE)
    except SmgError as error:
        return error
    assert (picture.width, picture.height) == (header.width, header.height)
    return None


@pytest.mark.parametrize("kind", FORMATS)
def test_mutated_files_are_taken_or_refused(kind: str) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        taken, refused = attack(kind, 300, seed=1)
    assert [str(one.message) for one in said] == []
    assert taken + refused == 300
    assert refused > 20


@pytest.mark.long
@pytest.mark.parametrize("kind", FORMATS)
def test_ten_thousand_mutated_files_stay_within_memory(kind: str) -> None:
    program = (
        "import resource, sys, warnings\n"
        "warnings.simplefilter('error')\n"
        "from tests_mutated import MEMORY_MAX, attack\n"
        f"attack({kind!r}, 50, 0)\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024\n"
        "before = peak()\n"
        f"print(*attack({kind!r}, 10_000, 2))\n"
        "assert peak() - before < MEMORY_MAX, peak() - before\n"
    )
    tests = Path(__file__).parents[4]
    setup = (
        "import importlib.util, sys\n"
        f"sys.path.insert(0, {str(tests)!r})\n"
        f"spec = importlib.util.spec_from_file_location('tests_mutated', {__file__!r})\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "sys.modules['tests_mutated'] = module\n"
        "spec.loader.exec_module(module)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", setup + program],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    taken, refused = map(int, done.stdout.split())
    assert taken + refused == 10_000
