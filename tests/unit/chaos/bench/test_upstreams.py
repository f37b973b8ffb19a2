"""What a gateway is put in front of, for every kind of workload."""

from typing import get_args

import pytest

from smg_chaos.bench.bench import _upstream_of
from smg_chaos.bench.gateways.gateways import KINDS, wanted_of
from smg_chaos.bench.load.workload import Behind
from smg_chaos.bench.load.workloads import WORKLOADS

OWN = {"vendor": "vendor", "tools": "tools", "pair": "pair"}


@pytest.mark.parametrize("behind", get_args(Behind))
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_gateway_speaks_to_its_engine_unless_something_else_stands_there(
    kind: str, behind: Behind
) -> None:
    wanted = wanted_of(kind)
    assert _upstream_of(wanted, behind) == OWN.get(behind, wanted.kind.upstream)


def test_every_kind_of_surroundings_has_a_workload_or_is_made_for_one() -> None:
    assert {one.behind for one in WORKLOADS.values()} | {"tools"} == set(get_args(Behind))
