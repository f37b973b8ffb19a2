import mmap
import os
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from smg_node.native import memory_calls
from smg_node.process_memory import ForeignCalls, unchanged_mappings, without_certificates
from support.http.certificate_authority import Authority


def mapping(head: str, *, anonymous_kb: int) -> list[str]:
    return [f"{head}\n", "Size: 8 kB\n", f"Anonymous:      {anonymous_kb} kB\n", "VmFlags: rd mr\n"]


CODE = "7f10000-7f12000 r-xp 00001000 08:01 42   /usr/lib/one.so"


@pytest.mark.parametrize(
    ("head", "anonymous_kb", "taken"),
    [
        (CODE, 0, [(0x7F10000, 0x2000)]),
        (CODE.replace("r-xp", "r--p"), 0, [(0x7F10000, 0x2000)]),
        (CODE.replace("r-xp", "r--s"), 0, [(0x7F10000, 0x2000)]),
        # Relocated and then protected: the pages in memory are the only copy.
        (CODE.replace("r-xp", "r--p"), 4, []),
        (CODE.replace("r-xp", "rw-p"), 0, []),
        (CODE.replace("r-xp", "rw-s"), 0, []),
        # The heap, the stack, the kernel's own page: no file is behind them.
        ("7f10000-7f12000 rw-p 00000000 00:00 0    [heap]", 8, []),
        ("7f10000-7f12000 r--p 00000000 00:00 0", 0, []),
        ("7f10000-7f12000 r-xp 00000000 00:00 0    [vdso]", 0, []),
    ],
)
def test_only_what_a_file_holds_unchanged_is_let_go(
    head: str, anonymous_kb: int, taken: list[tuple[int, int]]
) -> None:
    assert list(unchanged_mappings(mapping(head, anonymous_kb=anonymous_kb))) == taken


def test_each_mapping_is_judged_by_its_own_lines() -> None:
    lines = [
        *mapping(CODE, anonymous_kb=0),
        *mapping(CODE.replace("r-xp", "rw-p"), anonymous_kb=4),
        *mapping(CODE.replace("7f", "8f"), anonymous_kb=0),
    ]
    assert [start for start, _ in unchanged_mappings(lines)] == [0x7F10000, 0x8F10000]
    assert list(unchanged_mappings([])) == []
    assert list(unchanged_mappings(lines[:1])) == []
    assert list(unchanged_mappings(["Anonymous:  0 kB\n", "nonsense\n", *lines[:4]])) != []


def resident_kb(path: Path) -> int:
    """Return how much of a mapped file is in this process."""
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    assert any(line.endswith(f" {path}") for line in lines)
    return int(next(line for line in lines if line.startswith("Rss:")).split()[1])


@pytest.mark.parametrize("calls", [memory_calls, ForeignCalls()], ids=["compiled", "foreign"])
def test_pages_of_a_file_are_let_go_and_come_back(calls: Any, tmp_path: Path) -> None:
    path = tmp_path / "pages"
    path.write_bytes(b"abcd" * 16 * mmap.PAGESIZE)
    with path.open("rb") as file:
        pages = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    assert pages[:4] + pages[-4:] == b"abcdabcd"
    # Readahead maps more than what was read.
    begins, ends, had_kb = *address_of(path), resident_kb(path)
    assert had_kb > 0
    assert calls.unmap_pages(begins, ends - begins) is True
    assert resident_kb(path) == 0
    assert pages[:4] + pages[-4:] == b"abcdabcd"
    assert calls.unmap_pages(begins + 1, 1) is False
    # glibc says yes to an option that it does not know.
    assert {type(calls.mallopt(12345, 0)), type(calls.malloc_trim())} == {bool}


def address_of(path: Path) -> tuple[int, int]:
    """Return where a file is mapped."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    (line,) = [line for line in lines if line.endswith(f" {path}")]
    begins, ends = line.split()[0].split("-")
    return int(begins, 16), int(ends, 16)


def test_a_process_that_settled_works_on_and_is_smaller() -> None:
    code = """
import asyncio, gc, hashlib, json, ssl
from smg_node.process_memory import COLLECTED_AFTER, settle

def file_kb():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssFile"))

before = file_kb()
settle()
after = file_kb()
assert gc.get_freeze_count() > 1000
assert gc.get_threshold() == COLLECTED_AFTER
settle()
assert hashlib.sha256(b"x").hexdigest().startswith("2d711642")
assert json.loads("[1]") == [1] and ssl.create_default_context()
asyncio.run(asyncio.sleep(0))
print(before, after)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    before, after = map(int, done.stdout.split())
    assert after < before / 2


def test_what_was_spared_is_not_looked_at_again() -> None:
    program = """
import gc
from smg_node.process_memory import spare
rows = [[number] for number in range(50_000)]
before = len(gc.get_objects())
spare()
assert before > 50_000
assert len(gc.get_objects()) < 1_000
assert gc.get_freeze_count() >= 50_000
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)


@pytest.mark.parametrize("said", [True, False])
def test_certificates_are_kept_out_for_as_long_as_asked(
    said: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "trusted.pem"
    file.write_bytes(Authority("mine").certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    if not said:
        monkeypatch.delenv("SSL_CERT_FILE")
    with without_certificates():
        assert ssl.create_default_context().get_ca_certs() == []
    assert os.environ.get("SSL_CERT_FILE") == (str(file) if said else None)
    if said:
        assert len(ssl.create_default_context().get_ca_certs()) == 1
    with pytest.raises(ImportError), without_certificates():
        raise ImportError
    assert os.environ.get("SSL_CERT_FILE") == (str(file) if said else None)


def test_a_node_that_needs_the_web_framework_imports_it_without_certificates_and_calls_with_them(
    tmp_path: Path,
) -> None:
    file = tmp_path / "trusted.pem"
    file.write_bytes(Authority("mine").certificate)
    code = """
from smg_node.cli import _import_framework
_import_framework()
from aiohttp import connector
print(len(connector._SSL_CONTEXT_VERIFIED.get_ca_certs()))
from smg_node.engines.http.aiohttp_client import trusting
print(len(trusting().get_ca_certs()))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "SSL_CERT_FILE": str(file)},
    )
    assert done.stdout.split() == ["0", "1"]


def test_large_pieces_of_memory_get_pages_of_their_own_although_one_was_freed() -> None:
    # In a process of its own: it says how the C library allocates from then on.
    script = """
import ctypes, sys
from smg_node.process_memory import set_mmap_threshold
library = ctypes.CDLL(None)
library.malloc.restype, library.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
for freed in (1 << 20, 1 << 21):
    library.free(library.malloc(freed))
if sys.argv[1:]:
    set_mmap_threshold(1 << 18)
piece = library.malloc(1 << 18)
heap = next(line for line in open("/proc/self/maps") if "[heap]" in line).split()[0]
first, end = (int(one, 16) for one in heap.split("-"))
print(first <= piece < end)
"""

    def in_heap(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", script, *words], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    assert (in_heap(), in_heap("apart")) == ("True", "False")


def test_what_a_thread_read_and_freed_does_not_stay_at_the_end_of_its_heap() -> None:
    script = """
import sys, threading
from smg_node.process_memory import give_back_large, trim

def resident():
    return int(next(l for l in open("/proc/self/status") if l.startswith("VmRSS")).split()[1])

if sys.argv[1:]:
    give_back_large()
# Something large that was freed before: from then on the C library takes such pieces out of its heaps.
bytes(bytearray(16 << 20))
kept = []

def work():
    pieces = [bytearray(b"x" * (6 << 20)) for _ in range(3)]
    kept.append(bytes(1000))
    pieces.clear()
    done.set()
    ended.wait(60)

before, done, ended = resident(), threading.Event(), threading.Event()
thread = threading.Thread(target=work)
thread.start()
done.wait(60)
trim()
print(resident() - before)
ended.set()
"""

    def left_kb(*words: str) -> int:
        done = subprocess.run(
            [sys.executable, "-c", script, *words], capture_output=True, text=True, check=True
        )
        return int(done.stdout)

    assert left_kb() > 12 << 10
    assert left_kb("given back") < 6 << 10
