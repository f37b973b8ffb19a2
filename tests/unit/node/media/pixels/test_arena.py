"""Memory of pictures is kept for the next one, never shared between two at work, and given back when idle."""

import json
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

from smg_node.media.pixels.arena import IDLE_S, KEPT_MAX, Arenas, owned, scratch

Pixels = np.ndarray[Any, np.dtype[np.uint8]]


def filled(shape: tuple[int, ...], level: int) -> Pixels:
    made = scratch(shape)
    made[...] = level
    return made


def test_outside_of_work_arrays_are_ordinary_ones() -> None:
    one, two = filled((3, 4), 1), filled((3, 4), 2)
    assert one.base is None
    assert int(one.sum()) == 12
    assert int(two.sum()) == 24


def test_arrays_of_one_picture_do_not_overlap_and_the_next_one_gets_the_same_memory() -> None:
    arenas = Arenas()
    addresses = []
    for turn in range(3):
        with arenas.working(float(turn)):
            taken = [filled((10, 20, 3), level) for level in range(5)]
            assert [int(one[0, 0, 0]) for one in taken] == list(range(5))
            addresses.append([one.ctypes.data for one in taken])
    assert addresses[1] == addresses[2]
    assert 0 < arenas.kept_bytes() < 10_000


def test_what_is_owned_outlives_the_work() -> None:
    arenas = Arenas()
    pixels = kept = np.zeros(0, dtype=np.uint8)
    for _ in range(2):
        with arenas.working(0.0):
            pixels = filled((8, 8, 3), 5)
            kept = owned(pixels)
            fresh = np.ones(4, dtype=np.uint8)
            assert owned(fresh) is fresh
    with arenas.working(0.0):
        filled((8, 8, 3), 9)
    assert int(kept.max()) == 5
    assert owned(pixels) is pixels


def test_two_threads_at_work_have_two_arenas_and_work_inside_work_has_one() -> None:
    arenas = Arenas()
    barrier = threading.Barrier(2, timeout=30)
    found = []

    def work(level: int) -> None:
        for _ in range(2):
            with arenas.working(0.0), arenas.working(0.0):
                pixels = filled((50, 50, 3), level)
                barrier.wait()
                found.append(int(pixels.min()) == int(pixels.max()) == level)
                barrier.wait()

    threads = [threading.Thread(target=work, args=(level,)) for level in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


def test_memory_that_was_idle_is_given_back() -> None:
    arenas = Arenas()
    for now_s in (0.0, 10.0):
        with arenas.working(now_s):
            scratch((100, 100, 3))
    arenas.trim(10.0 + IDLE_S - 1)
    assert arenas.kept_bytes() > 0
    arenas.trim(10.0 + IDLE_S)
    assert arenas.kept_bytes() == 0


def test_a_picture_too_large_to_keep_leaves_nothing_behind() -> None:
    arenas = Arenas()
    with arenas.working(0.0):
        assert scratch((KEPT_MAX + 1,)).nbytes == KEPT_MAX + 1
    assert arenas.kept_bytes() == 0


def test_an_error_ends_the_work() -> None:
    arenas = Arenas()
    with pytest.raises(RuntimeError, match="wrong"), arenas.working(0.0):
        raise RuntimeError("wrong")
    assert scratch((2, 2)).base is None


WORK = """
import json, sys, threading
from io import BytesIO
from resource import RUSAGE_THREAD, getrusage

import numpy as np
from PIL import Image

from smg_node.media.pixels.arena import Arenas
from smg_node.media.pixels.decode import DecodeLimits, decode, read_header
from smg_node.media.pixels.patches import merged_patches
from smg_node.media.pixels.resize import resize

noise = np.random.default_rng(1).integers(0, 256, (68, 120, 3), dtype=np.uint8)
file = BytesIO()
Image.fromarray(noise).resize((1920, 1080)).save(file, "JPEG", quality=88)
data, arenas, counted = file.getvalue(), Arenas(), []

def work():
    with arenas.working(0.0):
        header = read_header(data, DecodeLimits(pixels_max=40_000_000), None)
        pixels = resize(decode(data, header, None).pixels, 1316, 756, "bicubic")
        merged_patches(pixels, 14, 2, 2)

def faults():
    before = getrusage(RUSAGE_THREAD).ru_minflt
    work()
    return getrusage(RUSAGE_THREAD).ru_minflt - before

# In a thread, as the node does it: what a thread allocates in one piece is mapped anew each time.
thread = threading.Thread(target=lambda: counted.extend(faults() for _ in range(12)))
thread.start()
thread.join()
json.dump(counted, sys.stdout)
"""
"""Counts the page faults of twelve pictures."""


def test_a_picture_of_1080p_costs_few_page_faults_once_memory_is_there() -> None:
    # In a process of its own: what tests before this one allocated, and told the allocator, is in the others.
    said = subprocess.run([sys.executable, "-c", WORK], capture_output=True, text=True, check=True)
    counted = json.loads(said.stdout)
    assert len(counted) == 12
    # The least of several: a machine that has no large pages left gives small ones, of which each is a fault.
    assert min(counted[4:]) <= 500, counted
