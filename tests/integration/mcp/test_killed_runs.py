"""A node is killed at any moment of runs of tools: each has run once at most, and what is said of it is true."""

import json
import sys
from collections.abc import Iterator
from urllib.request import Request, urlopen

import pytest

from support.mcp.killed_runs import Killing, killing
from support.tools.long_ranges import first_and_long

pytestmark = pytest.mark.integration
AT_ONCE = 8


@pytest.fixture(scope="module", params=["postgres", "valkey"])
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Killing]:
    with killing(tmp_path_factory.mktemp("killed"), request.param) as running:
        yield running


def faults(place: Killing, *specs: str) -> None:
    url = place.url.replace("/mcp", "/_mcp/faults")
    with urlopen(Request(url, json.dumps(specs).encode(), method="PUT"), timeout=30) as answer:
        assert answer.status < 300


@pytest.mark.parametrize("seed", first_and_long(range(25), now=1))
def test_what_runs_while_its_node_is_killed_has_run_once_or_it_is_said(
    place: Killing, seed: int
) -> None:
    faults(place)
    tally = place.round(seed, count=AT_ONCE, label="once", runs_max=1)
    sys.stdout.write(f"once, {place.scene.store}, seed {seed}: {tally}\n")


@pytest.mark.parametrize("seed", first_and_long(range(100, 110), now=1))
def test_what_may_be_sent_again_has_run_twice_at_most(place: Killing, seed: int) -> None:
    # Every other call runs, and its answer is lost on the way.
    faults(place, "reset:every=2")
    tally = place.round(seed, count=AT_ONCE, label="twice", runs_max=2)
    sys.stdout.write(f"twice, {place.scene.store}, seed {seed}: {tally}\n")
