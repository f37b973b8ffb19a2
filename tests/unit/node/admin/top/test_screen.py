"""What is on the screen, to the character; `tests/transcripts/admin/top.txt` reads like sitting in front of it."""

from functools import cache
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.admin.top.frame import Scene, ViewOptions, draw, draw_all, pressed, rows_of
from smg_node.admin.top.interval import Interval
from smg_node.admin.top.key_input import Keys
from smg_node.admin.top.panes import PANES
from smg_node.admin.top.snapshot import read_snapshot
from smg_node.admin.top.terminal_lines import cut_to, fitted, plain, printable, styled, width_of
from smg_node.admin.top.view import View, view_of
from support.http.polled_cluster import ToldCluster, use, work, worker
from support.tools.transcripts import run_transcript

FILE = Path(__file__).parents[4] / "transcripts" / "admin" / "top.txt"
NAMES = (
    "up",
    "down",
    "pgup",
    "pgdn",
    "k",
    "j",
    "b",
    "space",
    "s",
    "S",
    "r",
    "p",
    "?",
    "tab",
    *"1234x",
)


@cache
def busy(workers: int = 3) -> View:
    """Three nodes, one of them dead, that serve two models to four tenants."""
    cluster = ToldCluster("node-a", "node-b", "node-c")
    before = read_snapshot(cluster.said())
    work(cluster["node-a"], "llama-3.1-8b", "acme", ttft_s=[0.04] * 60)
    work(cluster["node-a"], "qwen3-32b", "beta", ttft_s=[0.3] * 12, failed=3)
    work(cluster["node-b"], "llama-3.1-8b", "acme", ttft_s=[0.09] * 40)
    work(cluster["node-b"], "llama-3.1-8b", "a\x1b[31mred", ttft_s=[0.09] * 4)
    work(cluster["node-b"], "llama-3.1-8b", "日本語の会社", ttft_s=[0.09] * 2)
    cluster["node-a"].count("smg_node_usage_refused_total", ("beta", "qwen3-32b"), 9)
    cluster["node-a"].set("smg_node_queue_waiting", ("qwen3-32b", "default"), 5)
    for name in ("node-a", "node-b"):
        cluster[name].set("smg_node_http_requests_inflight", (), 21)
        cluster[name].set("process_resident_memory_bytes", (), 104_857_600)
        cluster[name].set("smg_node_workers", ("ready",), workers - 1)
        cluster[name].set("smg_node_workers", ("down",), 1)
    cluster["node-c"].state, cluster["node-c"].silent = "dead", "it is dead"
    cluster.pass_s(2)
    urls = [f"grpc://10.0.0.{at}:30100" for at in range(1, workers + 1)]
    for at, url in enumerate(urls[1:]):
        cluster["node-a"].set("smg_node_worker_inflight", (url,), 10 + at)
        cluster["node-a"].set("smg_node_engine_kv_usage_ratio", (url,), min(1.0, 0.4 + at / 2))
    cards = [worker(url, "down" if at == 0 else "ready") for at, url in enumerate(urls)]
    uses = [
        use("tenant=acme#tokens/60000", 100_000, 92_500),
        use("model=qwen3-32b#concurrent", 8, 8),
        use("tenant=beta#cost/86400000", 25_500_000, 1_250_000, state="standing"),
    ]
    now = read_snapshot(cluster.said(), {"workers": cards}, {"uses": uses})
    return view_of(Interval(before, now))


def screen(args: dict[str, str], given_: str) -> str:
    """Draw what is seen after some keys; `trouble` is what went wrong since, `empty` is before the first look."""
    wish = ViewOptions()
    view = None if "empty" in args else busy(int(args.get("workers", "3")))
    for key in args.get("keys", "").split():
        wish = pressed(wish, key, rows_of(view, wish))
    scene = Scene(view, "12:00:00", 1.0, given_.strip())
    width, height = int(args.get("width", "80")), int(args.get("height", "24"))
    lines = draw(scene, wish, width, height)
    assert len(lines) == height
    assert all(width_of(plain(line)) <= width for line in lines)
    return "\n".join(f"|{plain(line)}" for line in lines)


def printed(args: dict[str, str], given_: str) -> str:
    """Print all there is, as for a pipe."""
    scene = Scene(busy(), "2026-11-23T12:00:00+0000", 1.0)
    return "\n".join(f"|{plain(line)}" for line in draw_all(scene, PANES, int(args["width"])))


def test_the_screen_is_as_written() -> None:
    run_transcript(FILE, {"screen": screen, "printed": printed})


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from(NAMES), max_size=12),
    st.integers(0, 200),
    st.integers(0, 60),
    st.sampled_from([1, 5, 40]),
)
def test_any_keys_in_a_window_of_any_size_draw_what_fits(
    keys: list[str], width: int, height: int, workers: int
) -> None:
    wish, view = ViewOptions(), busy(workers)
    for key in keys:
        wish = pressed(wish, key, rows_of(view, wish))
        lines = draw(Scene(view, "12:00:00", 1.0), wish, width, height)
        assert len(lines) <= height
        assert all(width_of(plain(line)) <= width for line in lines)


def test_scrolling_ends_at_the_last_row() -> None:
    wish, view = pressed(ViewOptions(), "2"), busy(30)
    for _ in range(99):
        wish = pressed(wish, "down", rows_of(view, wish))
    assert wish.offset == 29
    shown = [plain(line) for line in draw(Scene(view, "", 1.0), wish, 80, 24)]
    assert any("10.0.0.1:" in line for line in shown), (
        "sorted by OPEN, the one that is down comes last"
    )
    assert pressed(pressed(wish, "pgup", 30), "up", 30).offset == 18


def test_quitting_is_one_key() -> None:
    for key in ("q", "ctrl-c", "ctrl-d"):
        assert pressed(ViewOptions(), key).over
    assert not pressed(ViewOptions(), "x").over


_KEYS = st.lists(
    st.sampled_from(
        [b"q", b"2", b"\x1b[A", b"\x1b[6~", b"\x1bOB", b"\t", b" ", b"\x1b[1;5C", b"\x03"]
    )
)


@given(_KEYS, st.data())
def test_keys_are_the_same_however_they_are_cut(sent: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    keys = Keys()
    parts = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    found = [key for part in parts for key in keys.feed(part)]
    names = {
        b"\x1b[A": "up", b"\x1b[6~": "pgdn", b"\x1bOB": "down", b"\t": "tab", b" ": "space", b"\x03": "ctrl-c"
    }  # fmt: skip
    assert found == [names.get(one, one.decode()) for one in sent if one != b"\x1b[1;5C"]


@given(st.lists(st.binary(max_size=30), max_size=20))
def test_garbage_presses_no_key_that_is_none_and_is_not_kept(sent: list[bytes]) -> None:
    keys = Keys()
    for part in sent:
        assert all(key.isprintable() for key in keys.feed(part))
    keys.feed(b"\x1b[" + b"1" * 99)
    assert keys.feed(b"q")[-1] == "q"


@given(st.text(max_size=20), st.integers(0, 30), st.booleans())
def test_text_takes_exactly_the_room_it_is_given(text: str, width: int, right: bool) -> None:
    assert width_of(fitted(printable(text), width, right=right)) == width


def test_styles_are_closed_again_and_never_cut_into() -> None:
    scene = Scene(busy(), "12:00:00", 1.0)
    for line in draw(scene, ViewOptions(), 80, 24):
        drawn = styled(cut_to(line, 10))
        assert drawn.count("\x1b[0m") * 2 == drawn.count("\x1b[")
