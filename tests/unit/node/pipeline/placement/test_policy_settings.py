"""Policies of installed packages have a name like those of this house, and a broken one says whose it is."""

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from smg_node.config.frozen_settings import plain_settings
from smg_node.config.plugins import installed
from smg_node.config.schema.problems import ConfigurationError
from smg_node.fleet.load.worker_load import LoadOptions, WorkerLoad
from smg_node.pipeline.placement.policy_settings import (
    all_policies,
    build_policies,
    load_options,
    policy_options,
)
from smg_node.routing.policy import Asked, PolicyOptions
from smg_node.routing.policy_registry import OwnBindings, Policies, known_policies
from smg_node.routing.pool import Pool
from support.fleet.worker_pools import pool_of
from support.tools.configuration import load

SOURCE = '''
class Longest:
    """Long prompts to the last worker."""

    def __init__(self, parts):
        self._most = parts.options.prefix_tokens

    def choose(self, asked, pool, rng):
        return len(pool.candidates) - 1 if len(asked.ids) > self._most else 0


NOTHING = 7
'''
ENTRY = "[smg.policy]\nlongest = acme_routing:Longest\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install a package with a policy, as a wheel would."""
    (tmp_path / "acme_routing.py").write_text(SOURCE)
    metadata = tmp_path / "acme_routing-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-routing\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield metadata / "entry_points.txt"
    sys.modules.pop("acme_routing", None)


def test_without_plug_ins_there_are_the_built_in_ones() -> None:
    assert list(all_policies(())) == list(known_policies())
    assert installed("smg.policy") == ()


def test_a_policy_of_an_installed_package_chooses(package: Path) -> None:
    settings = load(["--policy", "longest", "--routing.prefix-tokens", "2"]).settings
    for read in (settings, plain_settings(settings)):
        policy = build_policies(read, OwnBindings()).named("longest")
        pool = pool_of([0, 0, 0])
        assert policy.choose(Asked("m", ids=[1]), pool, random.Random(1)) == 0
        assert policy.choose(Asked("m", ids=[1, 2, 3]), pool, random.Random(1)) == 2


def test_what_is_installed_is_read_without_importing_it(package: Path) -> None:
    assert installed("smg.policy") == (("longest", "acme_routing:Longest"),)
    assert "acme_routing" not in sys.modules


@pytest.mark.parametrize(
    ("name", "place", "says"),
    [
        ("random", "acme_routing:Longest", "of that name already"),
        ("Long", "acme_routing:Longest", "lower-case"),
        ("longest", "acme_routing:Shortest", "Shortest"),
        ("longest", "acme_routing:NOTHING", "nothing that makes a policy"),
        ("longest", "acme_nowhere:Longest", "acme_nowhere"),
        ("longest", "", "Empty module name"),
    ],
)
def test_a_broken_plug_in_stops_the_start_and_is_named(
    package: Path, name: str, place: str, says: str
) -> None:
    with pytest.raises(ConfigurationError, match=says) as refused:
        all_policies([(name, place)])
    assert repr(name) in str(refused.value)


def test_every_knob_of_the_policies_reaches_them() -> None:
    flags = [
        *("--routing.load-ratio", "2", "--routing.prefix-tokens", "7"),
        *("--routing.manual-assignment", "min_group", "--routing.manual-delegate", "random"),
        *("--routing.power-of-two-metric", "requests", "--routing.cache-mode", "threshold"),
        *("--cache-threshold", "0.7", "--balance-abs-threshold", "9"),
        *("--balance-rel-threshold", "3", "--bucket-adjust-interval-secs", "8"),
        *("--routing.bucket-tokens-max", "99", "--name", "n7"),
    ]
    assert policy_options(load(flags).settings) == PolicyOptions(
        load_factor=2,
        prefix_tokens=7,
        assignment="min_group",
        delegate="random",
        metric="requests",
        cache_mode="threshold",
        cache_threshold=0.7,
        balance_abs=9,
        balance_rel=3,
        bucket_adjust_s=8,
        bucket_tokens_max=99,
        node="n7",
    )


def test_every_knob_of_loads_reaches_them() -> None:
    flags = [
        *("--routing.prefill-tokens-per-s", "900", "--routing.pressure-weight-s", "1"),
        *("--routing.busy-weight-s", "2", "--routing.backlog-max", "3"),
        *("--overload.waiting-max", "4", "--overload.kv-ratio", "0.5"),
    ]
    assert load_options(load(flags).settings) == LoadOptions(900, 1, 2, 4, 0.5, 3)
    assert load_options(load([]).settings) == LoadOptions()
    assert policy_options(load(["--name", "n"]).settings) == PolicyOptions(node="n")


def test_other_numbers_reach_policies_that_are_made_already() -> None:
    policies = build_policies(load([]).settings, OwnBindings())
    pool, wish = pool_of([3, 1]), Asked("m", key="k")
    kept = policies.named("cache_aware")
    policies.retune(policy_options(load([]).settings), sticky=False)
    assert policies.named("cache_aware") is kept
    changed = load(["--routing.cache-mode", "threshold"]).settings
    policies.retune(policy_options(changed), sticky=True)
    assert policies.named("cache_aware") is not kept
    places = {policies.named("random").choose(wish, pool, random.Random(at)) for at in range(30)}
    assert len(places) == 1


def test_the_example_of_a_policy_of_ones_own_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = (Path(__file__).parents[5] / "docs/extending/policy.md").read_text()
    source = guide.split("# acme_routing.py\n")[1].split("```")[0]
    (tmp_path / "acme_half.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    known = all_policies([("fast_half", "acme_half:FastHalf")])
    sys.modules.pop("acme_half")
    rates = {"w-1": 2000.0, "w-2": 9000.0, "w-3": 4000.0, "w-4": 9500.0}
    pool = Pool([WorkerLoad(worker, prefill_rate=rate) for worker, rate in rates.items()])
    policy, rng = Policies(OwnBindings(), known=known).named("fast_half"), random.Random(1)
    assert {policy.choose(Asked("m", ids=range(9000)), pool, rng) for _ in range(40)} == {1, 3}
    assert len({policy.choose(Asked("m", ids=range(9)), pool, rng) for _ in range(40)}) == 4
    assert policy.choose(Asked("m", ids=range(9000)), pool.only([2]), rng) == 0
