"""A newcomer follows the README and the operator's guide on an empty machine, and every block there does what it says."""

import re
from pathlib import Path
from typing import Final

import pytest
import yaml

from support.pages.empty_machine import scene
from support.pages.page_blocks import Block, blocks_of, has_shape

pytestmark = pytest.mark.integration

_ROOT: Final = Path(__file__).parents[3]
# Each is followed on a machine of its own, from its first page to its last.
_READINGS: Final = {
    "readme": (
        "README.md",
        *(
            f"docs/{page}"
            for page in (
                "running.md",
                "discovery.md",
                "limits.md",
                "output.md",
                "history.md",
                "coding-agents.md",
                "interactions.md",
                "realtime.md",
                "operating.md",
                "disaggregation.md",
                "providers.md",
                "tools.md",
                "pictures.md",
            )
        ),
    ),
    "guide": tuple(
        f"docs/{page}"
        for page in (
            "first-cluster.md",
            "security.md",
            "access.md",
            "storage.md",
            "upgrade.md",
            "monitoring.md",
            "sizing.md",
            "troubleshooting.md",
        )
    ),
}
_PAGES: Final = tuple(page for pages in _READINGS.values() for page in pages)
# What cannot be tried on a machine that is made for a test; whoever adds one says here how many a page has.
_NOT_RUN: Final[dict[str, int]] = {
    "README.md": 1,
    "docs/coding-agents.md": 2,
    "docs/disaggregation.md": 1,
    "docs/interactions.md": 2,
    "docs/realtime.md": 2,
}


def _blocks(page: str) -> list[Block]:
    return list(blocks_of(page, (_ROOT / page).read_text(encoding="utf-8")))


@pytest.mark.parametrize("reading", _READINGS)
def test_a_newcomer_can_follow_the_pages_from_an_empty_machine(
    reading: str, tmp_path: Path
) -> None:
    blocks = [block for page in _READINGS[reading] for block in _blocks(page) if not block.not_run]
    assert blocks
    with scene(tmp_path / "machine") as newcomer:
        for block in blocks:
            wrong = newcomer.follow(block)
            assert not wrong, wrong


def test_the_index_names_the_pages_in_the_order_in_which_they_are_followed() -> None:
    index = (_ROOT / "docs/README.md").read_text(encoding="utf-8")
    named = [
        f"docs/{page}" for page in re.findall(r"^\| \[[\w-]+\.md\]\(([\w-]+\.md)\)", index, re.M)
    ]
    assert tuple(named) == tuple(page for page in _PAGES if page != "README.md")
    assert {*named, "docs/README.md"} == {
        f"docs/{path.name}" for path in (_ROOT / "docs").glob("*.md")
    }


def test_only_what_no_test_can_do_is_not_run() -> None:
    left_out = {page: sum(bool(block.not_run) for block in _blocks(page)) for page in _PAGES}
    assert {page: count for page, count in left_out.items() if count} == _NOT_RUN


@pytest.mark.parametrize(
    ("said", "shown", "fits"),
    [
        ("node a  31 ms", "node a 7 ms", True),
        ("key smg-0a1b2c3d4e5f", "key smg-ffffffffffff", True),
        ("one\ntwo\nthree", "one\n…\nthree", True),
        ("dead", "alive", False),
        ("alive 3", "alive", False),
    ],
)
def test_what_is_said_has_the_shape_that_a_page_shows(said: str, shown: str, fits: bool) -> None:
    assert has_shape(said, shown) is fits


def test_a_comment_says_how_the_block_behind_it_is_tried() -> None:
    text = "<!-- ends -->\n<!-- stays: up -->\n```sh\na\n```\n\n```sh\nb\n```\n\n```text\nc\n```\n"
    first, second = blocks_of("p.md", text)
    assert (first.stays, first.ends, first.shown, first.line) == ("up", True, "", 3)
    assert (second.stays, second.ends, second.shown) == ("", False, "c\n")


def test_prometheus_is_told_to_scrape_what_the_guide_has_just_read() -> None:
    text = (_ROOT / "docs/monitoring.md").read_text(encoding="utf-8")
    shown = yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0])
    (job,) = shown["scrape_configs"]
    read = re.findall(r"http://([\d.:]+)/metrics", text)
    assert job["job_name"] == "smg-node"  # which the alert of a node that is down asks for
    assert job["static_configs"] == [{"targets": read}]
    assert [
        name for name in shown["rule_files"] if not (_ROOT / "deploy/prometheus" / name).exists()
    ] == []
