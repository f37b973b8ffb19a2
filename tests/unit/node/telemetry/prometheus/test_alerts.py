import re
from pathlib import Path

import pytest
import yaml

from smg_node.telemetry.metrics.declared.node import METRICS
from smg_node.telemetry.prometheus.alert import Alert
from smg_node.telemetry.prometheus.alert_rules import (
    render_alerts_page,
    render_rule_tests,
    render_rules,
)
from smg_node.telemetry.prometheus.alerts import ALERTS

_DEPLOY = Path(__file__).parents[5] / "deploy"
_NAME = re.compile(r"smg_node_\w+")
_LABEL = re.compile(r"(\w+)=~?\"")
_ADDED_BY_PROMETHEUS = {"job", "instance"}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_reads_only_metrics_and_labels_that_are_declared(alert: Alert) -> None:
    declared = {metric.name: set(metric.labels) | _ADDED_BY_PROMETHEUS for metric in METRICS}
    for text in (alert.expression, *alert.example.fires, *alert.example.quiet):
        names = _NAME.findall(text)
        assert names or text.startswith("up{")
        assert set(names) <= declared.keys()
        labels = set(_LABEL.findall(text))
        allowed = set.union(*(declared[name] for name in names)) if names else _ADDED_BY_PROMETHEUS
        assert labels <= allowed


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_a_summary_names_only_labels_that_the_expression_keeps(alert: Alert) -> None:
    named = set(re.findall(r"\$labels\.(\w+)", alert.summary))
    kept = re.search(r" by \((\w+)\)", alert.expression)
    if kept is not None:
        assert named <= {kept.group(1)}
    else:
        metric = next(
            (metric for metric in METRICS if metric.name in _NAME.findall(alert.expression)), None
        )
        assert named <= {"instance", *(metric.labels if metric is not None else ())}


def test_every_alert_has_a_name_of_its_own_and_says_what_to_do() -> None:
    assert len({alert.name for alert in ALERTS}) == len(ALERTS)
    for alert in ALERTS:
        assert alert.meaning.endswith(".")
        assert alert.action.endswith(".")


def test_every_rule_has_its_section_in_the_page_that_it_points_to() -> None:
    headings = {
        line[3:].lower() for line in render_alerts_page().splitlines() if line.startswith("## ")
    }
    (group,) = yaml.safe_load(render_rules())["groups"]
    anchors = {rule["annotations"]["runbook"].partition("#")[2] for rule in group["rules"]}
    assert anchors == headings
    assert len(group["rules"]) == len(ALERTS)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("prometheus/alerts.yaml", render_rules()),
        ("prometheus/alerts_test.yaml", render_rule_tests()),
        ("reference/alerts.md", render_alerts_page()),
    ],
    ids=["rules", "tests", "page"],
)
def test_what_is_generated_from_the_alerts_is_current(path: str, text: str) -> None:
    assert (_DEPLOY / path).read_text(encoding="utf-8") == text, "run: make reference"
