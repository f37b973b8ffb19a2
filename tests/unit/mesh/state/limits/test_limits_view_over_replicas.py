"""Limits over real documents: what holds in memory holds there."""

from dataclasses import replace

import pytest

from smg_mesh.crdt.namespace import StateError
from smg_mesh.state.limits.limit_rule import Amount, LimitRule
from smg_mesh.state.limits.limits_view import LimitsView
from support.state.replica_world import SMALL, WALL_MS, ReplicaWorld

KEY = "tenant=t#requests/1000"


class Views:
    """What three nodes see."""

    def __init__(self, *, document_bytes_max: int = 262_144) -> None:
        options = replace(
            SMALL,
            documents={**SMALL.documents, "limits": 2},
            document_bytes_max=document_bytes_max,
        )
        self.world = ReplicaWorld(3, options=options)
        self.limits: dict[str, LimitsView] = {}
        for name in "abc":
            self.open(name)

    def open(self, name: str) -> None:
        namespace = self.world[name].replica.namespace("limits")
        self.limits[name] = LimitsView(
            namespace, wall_ms=lambda: WALL_MS + self.world.clocks.now_ms
        )

    def restart(self, name: str) -> None:
        dumps = self.world.stop(name).dumps()
        self.world.start(name, dumps)
        self.open(name)


def requests(amount: int, tenant: str = "t", **fields: object) -> LimitRule:
    amounts = (Amount("requests", amount, 1_000),)
    return LimitRule(tenant=tenant, amounts=amounts, **fields)  # type: ignore[arg-type]  # its own fields


def test_a_limit_comes_and_goes_by_rumor_and_what_was_allowed_is_remembered() -> None:
    views = Views()
    heard: list[list[str]] = []
    views.limits["b"].watch(lambda scopes: heard.append(list(scopes)))
    views.limits["a"].put(requests(1_000), version=0)
    views.world.rumors()
    views.world.pass_time(50)
    views.limits["b"].put(requests(10), version=None)
    views.world.rumors()
    views.world.pass_time(50)
    views.limits["c"].remove("tenant=t", version=None)
    views.world.rumors()
    assert [views.limits[name].get(KEY) for name in "abc"] == [None, None, None]
    assert [views.limits[name].basis() for name in "abc"] == [bytes(8)] * 3
    views.world.pass_time(50)
    views.limits["a"].put(requests(20), version=0)
    views.world.settle()
    limits = [views.limits[name].get(KEY) for name in "abc"]
    assert limits[0] is not None
    assert limits[0] == limits[1] == limits[2]
    assert limits[0].older == ((1_000, 0.5),)
    assert len({views.limits[name].basis() for name in "abc"}) == 1
    assert heard[0] == heard[-1] == ["tenant=t"]


def test_limits_are_there_again_after_a_restart_and_read_without_a_change() -> None:
    views = Views()
    views.limits["a"].put(requests(1_000, tenant="*"), version=0)
    views.limits["a"].put(requests(5), version=0)
    views.world.settle()
    before = views.limits["b"].get(KEY)
    basis = views.limits["b"].basis()
    views.restart("b")
    assert before is not None
    assert views.limits["b"].get(KEY) == before
    assert views.limits["b"].basis() == basis
    assert [one.scope for one in views.limits["b"].rules()] == ["tenant=*", "tenant=t"]


def test_two_sides_of_a_cut_agree_afterwards_and_leave_room_for_each_other() -> None:
    views = Views()
    views.limits["a"].put(requests(100), version=0)
    views.limits["b"].put(requests(900), version=0)
    views.world.settle()
    views.world.pass_time(1_100)
    limits = [views.limits[name].get(KEY) for name in "abc"]
    assert limits[0] is not None
    assert limits[0] == limits[1] == limits[2]
    allowed = {limits[0].amount, *(amount for amount, _ in limits[0].older)}
    assert 900 in allowed


def fill(view: LimitsView) -> None:
    for number in range(1_000):
        view.put(requests(5, tenant=f"tenant-{number}", note="n" * 200), version=0)


def test_a_full_document_refuses_new_limits_and_lets_old_ones_go() -> None:
    views = Views(document_bytes_max=4_000)
    with pytest.raises(StateError) as refused:
        fill(views.limits["a"])
    assert refused.value.reason == "full"
    views.world.settle()
    scopes = [one.scope for one in views.limits["b"].rules()]
    assert len(scopes) > 4
    for scope in scopes:
        views.limits["b"].remove(scope, version=None)
        views.world.pass_time(60_000)
        views.world.settle()
    assert list(views.limits["a"].rules()) == []
