"""A limit on a provider's calls: three real nodes together never send a vendor more, though it tells nothing itself."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.clients.many_clients import clients
from support.processes.mesh_trio import Trio, running_trio
from support.processes.node_api import Answer, call
from support.providers.stand_ins import KEY, StandIn, running_stand_ins

pytestmark = pytest.mark.integration

PROVIDERS = "/v1/cluster/providers"
MODEL = "gemini-2.5-flash"
A_SECOND = 10
FILLED = 0.05
"""So little of the minute is there at first that a second's share too much is refused."""
LOAD_S = 10.0
SCOPE = "provider=gem"


@dataclass
class World:
    trio: Trio
    vendor: StandIn
    other: StandIn

    def limit_vendor(self) -> None:
        limits = {"requests_per_minute": 60 * A_SECOND, "filled": FILLED}
        self.vendor.admin("/limits", limits, "PUT")

    def reached(self, stand_in: StandIn) -> int:
        return len(stand_in.admin("/requests?last=1000000"))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder: Path = tmp_path_factory.mktemp("shares")
    for name in ("vendor", "nodes"):
        (folder / name).mkdir()
    kinds = ("--kind", "gemini", "--kind", "openai")
    with (
        running_stand_ins(folder / "vendor", *kinds, "--model", "*") as ((vendor, other), _),
        running_trio(folder / "nodes") as trio,
    ):
        for name, kind, where, model in (
            ("gem", "gemini", vendor, MODEL),
            ("oai", "openai", other, "gpt-4.1-mini"),
        ):
            body = {"kind": kind, "base": where.base, "keys": [KEY], "models": [model]}
            made = call(trio["a"], "PUT", f"{PROVIDERS}/{name}", body, {"if-match": "*"})
            assert made.status == 200, made
        targets = [f"gem/{MODEL}", {"to": "oai/gpt-4.1-mini", "on": ["rate"]}]
        routed = call(
            trio["a"], "PUT", "/v1/cluster/routes/both", {"targets": targets}, {"if-match": "*"}
        )
        assert routed.status == 200, routed
        amounts = ("--requests", f"{A_SECOND}/second", "--mode", "strict")
        limited = trio["a"].admin("limits", "set", "--scope", SCOPE, *amounts)
        assert limited.code == 0, limited
        trio.all_agree()
        for name in ("oai", "gem"):
            trio.on_all(
                lambda node, name=name: all(  # type: ignore[misc]  # bound now
                    one["state"] == "ready" for one in node.get(f"{PROVIDERS}/{name}")["targets"]
                ),
                "served",
            )
        yield World(trio, vendor, other)


def test_a_vendor_refuses_nothing_and_clients_are_told_when_to_come_again(world: World) -> None:
    world.limit_vendor()
    before, began_s = world.reached(world.vendor), time.monotonic()
    with clients(world.trio, 2, MODEL) as offered:
        time.sleep(LOAD_S)
        told = world.vendor.admin("/limits")
        sent, took_s = world.reached(world.vendor) - before, time.monotonic() - began_s
    assert told["refused"] == 0, told
    # Windows are numbered: of those that began, each has its share and no more.
    assert 0.7 * A_SECOND * LOAD_S <= sent <= A_SECOND * (int(took_s) + 2)
    answers: list[Answer] = [answer for one in offered for answer in one.answers]
    refused = [answer for answer in answers if answer.status == 429]
    assert {answer.status for answer in answers} == {200, 429}
    for answer in refused:
        assert answer.headers["x-smg-limit"] == f"{SCOPE}#requests/second"
        assert 0 < int(answer.headers["retry-after-ms"]) <= 2_100
        assert answer.error["code"] == "rate_limit_exceeded"


def test_what_a_provider_may_not_take_goes_to_another_target(world: World) -> None:
    world.limit_vendor()
    before = world.reached(world.other)
    with clients(world.trio, 2, "both") as offered:
        time.sleep(LOAD_S / 2)
    answers = [answer for one in offered for answer in one.answers]
    assert {answer.status for answer in answers} == {200}
    assert world.vendor.admin("/limits")["refused"] == 0
    assert world.reached(world.other) > before


def test_the_limit_is_shown_with_what_is_spent_of_it(world: World) -> None:
    shown = world.trio["b"].admin("limits", "show", SCOPE)
    assert shown.code == 0, shown
    assert f"{SCOPE}#requests/second" in shown.out
    listed = world.trio["c"].admin("limits", "list")
    assert SCOPE in listed.out
    refused = world.trio["c"].admin(
        "limits", "set", "--scope", "provider=gem,tenant=x", "--requests", "5/minute"
    )
    assert refused.code != 0
    assert "stands alone" in refused.err
