"""What customers do with a share, and what is counted of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from smg_chaos.simulate.base.virtual_clock import MS, SECOND
from smg_chaos.simulate.rights.rights_life import Teller
from smg_chaos.simulate.rights.rights_setting import Flow, RightsSetting
from smg_chaos.simulate.rights.rights_world import Market
from smg_chaos.simulate.world.world import Setting, World
from smg_mesh.escrow.limit_model import Limit
from smg_mesh.escrow.messages.effects import Effect
from support.mesh.simulated_world import fake_core
from support.rights.simple_rights import FixedRights

LIMIT = Limit(key="m#requests/1000", unit="requests", amount=100, window_ms=1_000, mode="strict")
SETTING = RightsSetting(
    limits=(LIMIT,),
    flows=(Flow(key=LIMIT.key, rates_per_s=(1_000.0,)),),
    expect=1,
    make_core=FixedRights,
)


class PatientRights(FixedRights):
    """Its owner may always have more, as far as it knows"""

    def tick(self, *, now_ms: int, wall_ms: int) -> Sequence[Effect]:
        super().tick(now_ms=now_ms, wall_ms=wall_ms)
        for share in self._shares.values():
            share.pool = 10
        return []


@dataclass
class Small:
    world: World
    market: Market

    @property
    def teller(self) -> Teller:
        (teller,) = self.market.tellers()
        return teller


def small(setting: RightsSetting = SETTING) -> Small:
    world = World(Setting(seed=1, rights=setting), fake_core)
    world.boot(world.add_host("n0"))
    assert world.market is not None
    return Small(world, world.market)


def test_what_fits_is_admitted_and_the_rest_is_refused_at_once_when_there_is_no_pool() -> None:
    scene = small()
    scene.world.run(3 * SECOND - 1)
    pages = list(scene.market.books.pages())[1:]
    assert [page.admitted for page in pages] == [20, 20]  # a fifth stands, all of it is asked for
    for page in pages:
        assert 850 <= page.offered <= 1_150
        assert page.refused == page.offered - page.admitted
    assert scene.world.broken_promises == []


def test_requests_wait_for_a_pool_and_are_refused_after_sixty_milliseconds() -> None:
    scene = small(replace(SETTING, make_core=PatientRights))
    scene.world.run(2 * SECOND - 1)
    page = list(scene.market.books.pages())[1]
    # Sixty milliseconds of requests wait at any time, at most 200 of them.
    assert page.admitted == 20
    waiting = page.offered - page.admitted - page.refused
    assert waiting == 0
    assert 800 <= page.refused <= 1_000


def test_a_reservation_is_settled_in_its_window_or_not_at_all() -> None:
    flow = Flow(
        key=LIMIT.key,
        rates_per_s=(4.5,),
        cost=(4, 4),
        settles=True,
        used=(0.5, 0.5),
        until_ms=8_000,
    )
    scene = small(replace(SETTING, flows=(flow,)))
    scene.world.run(9 * SECOND)
    pages = list(scene.market.books.pages())
    admitted = [page.admitted for page in pages]
    assert all(units % 2 == 0 for units in admitted)
    assert any(units % 4 for units in admitted)  # some came back in time
    assert scene.world.broken_promises == []


def test_what_goes_beyond_a_reservation_is_charged_or_owed() -> None:
    flow = Flow(
        key=LIMIT.key,
        rates_per_s=(50.0,),
        cost=(4, 4),
        settles=True,
        used=(1.5, 1.5),
        until_ms=8_000,
    )
    scene = small(replace(SETTING, flows=(flow,)))
    scene.world.run(9 * SECOND)
    owed = sum(page.owed for page in scene.market.books.pages())
    share = scene.teller.share(LIMIT.key)
    assert share is not None
    assert share.debt >= owed > 0  # what was owed while no window was there is on no page


def test_a_node_that_stands_still_serves_a_second_of_backlog() -> None:
    scene = small()
    (node,) = scene.world.nodes()
    scene.world.run(2 * SECOND + 200 * MS)
    before = sum(page.offered for page in scene.market.books.pages())
    scene.world.stop(node)
    scene.world.run_for(5 * SECOND)
    scene.world.go_on(node, timers_first=True)
    scene.world.run_for(30 * MS)
    after = sum(page.offered for page in scene.market.books.pages())
    assert 0 < after - before <= 2_100
