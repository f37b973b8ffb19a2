import msgspec

from smg_chaos.simulate.base.virtual_clock import SECOND
from smg_chaos.simulate.rights.definitions import Definitions, Heard
from smg_mesh.escrow.limit_model import Limit

OLD = Limit(key="k#requests/1000", unit="requests", amount=100, window_ms=1_000)
NEW = msgspec.structs.replace(OLD, amount=10, version=1)


def test_a_life_goes_by_newer_versions_only_and_its_basis_changes() -> None:
    heard = Heard((OLD,))
    before = heard.basis()
    assert len(before) == 8
    assert not heard.hear(OLD)
    assert heard.basis() == before
    assert heard.hear(NEW)
    assert heard.get(OLD.key) == NEW
    assert heard.basis() != before == Heard((OLD,)).basis()
    assert heard.get("other") is None


def test_a_version_counts_in_every_window_in_which_somebody_goes_by_it() -> None:
    definitions = Definitions((OLD,))
    definitions.add(NEW, 10 * SECOND)
    definitions.held(11 * SECOND, lambda limit: limit == OLD)
    assert definitions.in_force(OLD.key, 20 * SECOND, 21 * SECOND) == [OLD, NEW]
    assert definitions.in_force(OLD.key, 8 * SECOND, 9 * SECOND) == [OLD]
    definitions.held(12 * SECOND, lambda limit: False)
    assert definitions.in_force(OLD.key, 11 * SECOND, 12 * SECOND) == [OLD, NEW]
    assert definitions.in_force(OLD.key, 12 * SECOND, 13 * SECOND) == [NEW]
    assert definitions.newest(OLD.key) == NEW


def test_a_life_that_begins_with_an_old_disk_brings_its_version_back() -> None:
    definitions = Definitions((OLD,))
    definitions.add(NEW, 1 * SECOND)
    definitions.held(2 * SECOND, lambda limit: False)
    definitions.held(9 * SECOND, lambda limit: True)
    assert definitions.in_force(OLD.key, 20 * SECOND, 21 * SECOND) == [OLD, NEW]
