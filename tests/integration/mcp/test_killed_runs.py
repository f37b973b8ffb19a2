"""A node is killed at any moment of runs of tools: each has run as often as it may, and what is said of it is true."""

import sys
from collections.abc import Iterator

import pytest

from support.mcp.killed_runs import Killing, killing
from support.tools.long_ranges import first_and_long

pytestmark = pytest.mark.integration
AT_ONCE = 8
"""Answers that one node makes, and dies at: each is at another place then."""


@pytest.fixture(scope="module", params=["postgres", "valkey"])
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Killing]:
    with killing(tmp_path_factory.mktemp("killed"), request.param) as running:
        yield running


@pytest.mark.parametrize("seed", first_and_long(range(100), now=1))
def test_what_runs_while_its_node_is_killed_has_run_once_or_it_is_said(
    place: Killing, seed: int
) -> None:
    tally = place.round(seed, count=AT_ONCE)
    sys.stdout.write(f"{place.scene.store}, seed {seed}: {tally}\n")
