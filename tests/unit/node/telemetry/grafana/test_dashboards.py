"""Dashboards and recording rules speak of metrics that there are, and leave none out."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from smg_node.telemetry.grafana.dashboards import BOARDS, UNSHOWN
from smg_node.telemetry.grafana.files import render_dashboard
from smg_node.telemetry.grafana.panels import WIDTH, Board, Query
from smg_node.telemetry.metrics.cluster_metrics import KNOWN
from smg_node.telemetry.metrics.metric import Metric
from smg_node.telemetry.prometheus.recording_rules import render_recordings
from smg_node.telemetry.prometheus.recordings import RECORDINGS, Recording

_ROOT = Path(__file__).parents[5]
_GRAFANA = _ROOT / "deploy" / "grafana"
_NAME = re.compile(r"(?:smg_node_|process_)\w+")
_RECORDED = re.compile(r"smg:[\w:]+")
_SELECTOR = re.compile(r"([\w:]+)\{([^}]*)\}")
_LABEL = re.compile(r"(\w+)=~?\"")
_BY = re.compile(r" by \(([^)]*)\)")
_SHOWN = re.compile(r"\{\{(\w+)\}\}")
_PROMETHEUS = {"job", "instance"}
_RULES = {one.name: one for one in RECORDINGS}


def metric_of(name: str) -> Metric:
    """Return the metric that a series of this name belongs to; KeyError if there is none."""
    for suffix in ("", "_bucket", "_sum", "_count"):
        whole = name.removesuffix(suffix) if suffix else name
        if whole in KNOWN and (not suffix or KNOWN[whole].kind == "histogram"):
            return KNOWN[whole]
    raise KeyError(name)


def labels_of(name: str) -> set[str]:
    """Return the labels that a series of this name may have."""
    if name == "up":
        return _PROMETHEUS
    if name in _RULES:
        return set(_RULES[name].labels)
    histogram = {"le"} if name.endswith("_bucket") else set()
    return set(metric_of(name).labels) | _PROMETHEUS | histogram


def check(expression: str) -> None:
    """Raise AssertionError if an expression speaks of what there is not."""
    names = _NAME.findall(expression) + _RECORDED.findall(expression)
    names += ["up"] if re.search(r"\bup\{", expression) else []
    assert names, expression
    for name, selector in _SELECTOR.findall(expression):
        assert set(_LABEL.findall(selector)) <= labels_of(name), expression
    known = set.intersection(*(labels_of(name) for name in names))
    for by in _BY.findall(expression):
        assert {label.strip() for label in by.split(",")} <= known, expression


def queries(board: Board) -> Iterator[Query]:
    for section in board.sections:
        for panel in section.panels:
            yield from panel.queries


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_a_dashboard_reads_only_metrics_and_labels_that_are_declared(board: Board) -> None:
    for query in queries(board):
        check(query.expression)
        kept = {label.strip() for by in _BY.findall(query.expression) for label in by.split(",")}
        recorded = {
            label for name in _RECORDED.findall(query.expression) for label in _RULES[name].labels
        }
        assert set(_SHOWN.findall(query.legend)) <= kept | recorded, query


@pytest.mark.parametrize("rule", RECORDINGS, ids=lambda rule: rule.name)
def test_a_recording_reads_only_what_is_declared_and_keeps_what_it_says(rule: Recording) -> None:
    check(rule.expression)
    kept = [{label.strip() for label in by.split(",")} for by in _BY.findall(rule.expression)]
    assert all(by - {"le"} == set(rule.labels) for by in kept)
    assert re.fullmatch(r"smg:[a-z_]+:[a-z0-9_]+", rule.name)


def test_every_metric_stands_in_a_panel_or_on_the_list_of_those_that_need_none() -> None:
    text = "\n".join(query.expression for board in BOARDS for query in queries(board))
    read = {rule for rule in RECORDINGS if rule.name in _RECORDED.findall(text)}
    text += "\n".join(rule.expression for rule in read)
    shown = {metric_of(name) for name in _NAME.findall(text)}
    missing = {metric.name for metric in KNOWN.values()} - {
        metric.name for metric in (*shown, *UNSHOWN)
    }
    assert not missing
    assert not shown & UNSHOWN.keys(), "it has a panel by now"
    assert all(reason for reason in UNSHOWN.values())


def test_every_recording_is_of_use_and_has_a_name_of_its_own() -> None:
    text = "\n".join(query.expression for board in BOARDS for query in queries(board))
    used = set(_RECORDED.findall(text))
    assert used <= _RULES.keys()
    assert len(_RULES) == len(RECORDINGS)
    # Of a time three quantiles are kept together, whichever of them a panel shows.
    families = {name.rpartition(":")[0] for name in used}
    assert {name.rpartition(":")[0] for name in _RULES} == families


def test_a_query_of_something_undeclared_would_be_found() -> None:
    for wrong in (
        'sum (smg_node_nothing{job=~"$job"})',
        'sum (smg_node_queue_waiting{colour="red"})',
        "sum by (colour) (smg_node_queue_waiting)",
        "smg:nothing:rate5m",
    ):
        with pytest.raises((AssertionError, KeyError)):
            check(wrong)


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_a_dashboard_has_no_panel_over_another_one(board: Board) -> None:
    content = json.loads(render_dashboard(board))
    taken: Counter[tuple[int, int]] = Counter()
    for panel in content["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= WIDTH
        taken.update(
            (place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])
        )
    assert max(taken.values()) == 1
    assert len({panel["id"] for panel in content["panels"]}) == len(content["panels"])


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_every_panel_says_what_is_seen_and_is_read_by_its_targets(board: Board) -> None:
    content = json.loads(render_dashboard(board))
    panels: list[dict[str, Any]] = [one for one in content["panels"] if one["type"] != "row"]
    assert panels
    for panel in panels:
        assert panel["description"].endswith("."), panel["title"]
        references = [target["refId"] for target in panel["targets"]]
        assert references == sorted(set(references))
        assert references
    names = {variable["name"] for variable in content["templating"]["list"]}
    assert names == {"datasource", "job", "node"}


def test_grafana_is_pointed_at_the_dashboards_and_at_prometheus() -> None:
    folder = _GRAFANA / "provisioning"
    (provider,) = yaml.safe_load((folder / "dashboards" / "smg-node.yaml").read_text())["providers"]
    assert provider["type"] == "file"
    (source,) = yaml.safe_load((folder / "datasources" / "prometheus.yaml").read_text())[
        "datasources"
    ]
    assert (source["type"], source["isDefault"]) == ("prometheus", True)
    files = {file.stem for file in (_GRAFANA / "dashboards").iterdir()}
    assert files == {board.name for board in BOARDS}


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_the_file_of_a_dashboard_is_current(board: Board) -> None:
    file = _GRAFANA / "dashboards" / f"{board.name}.json"
    assert file.read_text(encoding="utf-8") == render_dashboard(board), "run: make reference"


def test_the_file_of_the_recordings_is_current() -> None:
    file = _ROOT / "deploy" / "prometheus" / "recording.yaml"
    assert file.read_text(encoding="utf-8") == render_recordings(), "run: make reference"
