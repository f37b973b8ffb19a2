"""Nodes whose disk is full, hangs, or is not there: they say so, and share and serve as if nothing were."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.processes.mesh_nodes import WAIT_S, MeshNode, flags_of, make_key, mesh_node, until
from support.processes.node_api import call, digests, workers

pytestmark = pytest.mark.integration

NOBODY = "grpc://127.0.0.1:9"
ANOTHER = "grpc://127.0.0.1:10"
SLACK_S = 3.0


@dataclass
class Pair:
    """Two nodes that see each other; the first one has trouble with its disk."""

    troubled: MeshNode
    well: MeshNode

    def share(self, url: str, at: MeshNode) -> None:
        """Add a worker at one of them; it must be at both, soon."""
        since_s = time.monotonic()
        assert call(at, "POST", "/workers", {"url": url}).status == 202
        until(lambda: all(url in workers(node) for node in (self.troubled, self.well)), "shared")
        assert time.monotonic() - since_s <= 0.5 + SLACK_S

    def agree(self) -> None:
        until(lambda: digests(self.troubled) == digests(self.well), "agreeing")


def state_folder(scratch: Path, name: str) -> Path:
    return scratch / name / "data" / "mesh" / name / "state"


@contextmanager
def pair(scratch: Path) -> Iterator[Pair]:
    key = make_key(scratch)
    with (
        mesh_node(scratch / "b", flags_of("b", key=key)) as well,
        mesh_node(scratch / "a", flags_of("a", key=key, join=[well.mesh])) as troubled,
    ):
        for node in (well, troubled):
            node.awaits_states(a="alive", b="alive")
            node.awaits_ready()
        yield Pair(troubled, well)
        assert "Traceback" not in troubled.process.said()


def failures(node: MeshNode) -> float:
    return node.node.metric("smg_node_state_saves_total", outcome="failed")


def is_reported(node: MeshNode) -> bool:
    return failures(node) > 0 and "a restart would not remember it" in node.process.said()


def test_a_full_disk_costs_a_report_and_what_was_missed_is_written_when_there_is_room(
    tmp_path: Path,
) -> None:
    with pair(tmp_path) as both:
        folder = state_folder(tmp_path, "a")
        folder.mkdir(parents=True, exist_ok=True)
        # What is written there is refused for want of room; a failed file is taken away again.
        for number in range(64):
            (folder / f"workers-{number}.bin.new").symlink_to("/dev/full")
        both.share(NOBODY, both.troubled)
        both.troubled.awaits("reported", lambda: is_reported(both.troubled))
        assert "No space left on device" in both.troubled.process.said()
        both.share(ANOTHER, both.well)
        both.agree()
        assert both.troubled.node.status("/readiness") == 200
        for left in folder.glob("*.new"):
            left.unlink()
        both.troubled.awaits(
            "written", lambda: both.troubled.node.metric("smg_node_state_unsaved") == 0
        )
        assert both.troubled.process.said().count("a restart would not remember it") == 1
    with mesh_node(tmp_path / "a", flags_of("a", key=tmp_path / "mesh.key")) as alone:
        assert workers(alone).keys() == {NOBODY, ANOTHER}


def test_a_disk_that_hangs_holds_up_nothing_not_even_the_end(tmp_path: Path) -> None:
    with pair(tmp_path) as both:
        folder = state_folder(tmp_path, "a")
        both.troubled.awaits("its folder", folder.exists)
        # Whoever opens a pipe for writing that nobody reads waits for ever, as on a dead NFS server.
        os.mkfifo(folder / "when.json.new")
        both.share(NOBODY, both.troubled)
        slowest_s = 0.0

        def is_told() -> bool:
            nonlocal slowest_s
            since_s = time.monotonic()
            assert both.troubled.node.status("/readiness") == 200
            slowest_s = max(slowest_s, time.monotonic() - since_s)
            return is_reported(both.troubled)

        both.troubled.awaits("reported", is_told)
        assert slowest_s <= SLACK_S
        both.share(ANOTHER, both.well)
        both.agree()
        since_s = time.monotonic()
        assert both.troubled.admin("cluster", "leave").code == 0
        assert both.troubled.process.wait(WAIT_S) == 0
        assert time.monotonic() - since_s <= 5.0 + SLACK_S
        both.well.awaits_states(a="left")


def test_a_disk_that_hangs_at_the_start_is_done_without(tmp_path: Path) -> None:
    folder = state_folder(tmp_path, "a")
    folder.mkdir(parents=True)
    os.mkfifo(folder / "workers-0.bin")
    with pair(tmp_path) as both:
        assert is_reported(both.troubled)
        both.share(NOBODY, both.troubled)
        both.share(ANOTHER, both.well)
        both.agree()
        assert both.troubled.node.status("/readiness") == 200


def test_a_file_in_place_of_the_folder_is_reported_and_done_without(tmp_path: Path) -> None:
    folder = state_folder(tmp_path, "a")
    folder.parent.mkdir(parents=True)
    folder.write_text("not a folder")
    with pair(tmp_path) as both:
        assert is_reported(both.troubled)
        both.share(NOBODY, both.troubled)
        both.share(ANOTHER, both.well)
        both.agree()
        assert both.troubled.node.status("/readiness") == 200
    assert folder.read_text() == "not a folder"
