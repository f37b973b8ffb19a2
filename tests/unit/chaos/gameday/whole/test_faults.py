"""What the faults of a network do to which links, alone and together."""

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from smg_chaos.gameday.lab.link_rules import BLOCKED, LinkRule, check, rule_of
from smg_chaos.gameday.whole.day_run import mistakes_in
from smg_chaos.gameday.whole.faults.network import Isolate, OneWay, Partition, Weather
from smg_chaos.gameday.whole.plan import KINDS, Planned
from smg_chaos.gameday.whole.scene import PLACES, Scene, added_up

NODES = ("n0", "n1", "n2", "n3", "n4")
EVERYWHERE = (*NODES, *PLACES)


def cut_links(fault: type[Partition | OneWay | Isolate], *victims: str) -> set[tuple[str, str]]:
    scene = cast(Scene, SimpleNamespace(cluster=SimpleNamespace(names=NODES)))
    rules = fault(scene, Planned(0.0, KINDS["partition"], 1.0, victims)).rules()
    check(rules, frozenset(EVERYWHERE))
    return {(a, b) for a in EVERYWHERE for b in EVERYWHERE if a != b and rule_of(rules, a, b).block}


def test_a_partition_leaves_clients_engines_and_the_store_alone() -> None:
    links = cut_links(Partition, "n1", "n3")
    assert len(links) == 2 * 2 * 3
    assert not [link for link in links if set(link) & set(PLACES)]
    assert all((a in ("n1", "n3")) != (b in ("n1", "n3")) for a, b in links)


def test_one_way_is_one_way() -> None:
    assert cut_links(OneWay, "n2") == {("n2", other) for other in NODES if other != "n2"}


def test_an_isolated_node_reaches_nobody_and_nobody_it() -> None:
    links = cut_links(Isolate, "n4")
    others = [place for place in EVERYWHERE if place != "n4"]
    assert links == {("n4", one) for one in others} | {(one, "n4") for one in others}


def test_the_weather_is_between_nodes_only() -> None:
    scene = cast(Scene, SimpleNamespace(cluster=SimpleNamespace(names=NODES)))
    rules = Weather(scene, Planned(0.0, KINDS["weather"], 1.0)).rules()
    assert len(rules) == len(NODES) * (len(NODES) - 1)
    assert not [link for link in rules if set(link.split(">")) & set(PLACES)]


@pytest.mark.parametrize("turned", [False, True])
def test_where_two_faults_have_a_word_about_a_link_a_cut_counts(turned: bool) -> None:
    rain = LinkRule(loss=0.5)
    parts = [{"a>b": rain, "b>a": rain}, {"a>b": BLOCKED}]
    assert added_up(parts[::-1] if turned else parts) == {"a>b": BLOCKED, "b>a": rain}


def test_a_traceback_in_a_log_and_what_is_no_line_of_it_are_mistakes(tmp_path: Path) -> None:
    log = tmp_path / "n0" / "output.log"
    log.parent.mkdir()
    name = logging.getLevelName(logging.ERROR).lower()
    lines = ['{"level":"info"}', f'{{"level":"{name}","error":"Traceback (most"}}', "Fatal Python"]
    log.write_text("\n".join(lines) + "\n")
    assert [one.partition(": ")[2] for one in mistakes_in(log)] == lines[1:]
