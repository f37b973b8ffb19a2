"""Alert rules for Prometheus, their tests and the operator's page, made from the declared alerts.

`python -m smg_node.telemetry.prometheus.alert_rules rules|tests|page` prints one of them; `tools/reference.sh` keeps the files.
"""

import sys
from collections.abc import Callable

import yaml

from smg_node.telemetry.prometheus.alert import Alert
from smg_node.telemetry.prometheus.alerts import ALERTS

_GENERATED = (
    "# Generated from smg_node/telemetry/prometheus/alerts.py by `make reference`; do not edit.\n"
)
_PAGE_HEAD = """# Alerts

Generated from `smg_node/telemetry/prometheus/alerts.py` by `make reference`; do not edit. The rules are
`deploy/prometheus/alerts.yaml`. *Critical* hurts clients or soon will; *warning* can wait for the day.
"""
_PAGE = "deploy/reference/alerts.md"
_ENOUGH_MINUTES = 20
"""When the tests look: longer than any alert waits, and within every example."""


def render_rules() -> str:
    """Return a rule file of Prometheus."""
    groups = [{"name": "smg-node", "rules": [_rule(alert) for alert in ALERTS]}]
    return _GENERATED + _yaml({"groups": groups})


def render_rule_tests() -> str:
    """Return a file for `promtool test rules`: of each alert, that it fires and that it stays
    silent.
    """
    tests = [
        _rule_test(alert, series, fires=fires)
        for alert in ALERTS
        for series, fires in ((alert.example.fires, True), (alert.example.quiet, False))
    ]
    return _GENERATED + _yaml(
        {"rule_files": ["alerts.yaml"], "evaluation_interval": "1m", "tests": tests}
    )


def render_alerts_page() -> str:
    """Return the operator's page, one section an alert, ending with a line feed."""
    return _PAGE_HEAD + "".join(_section(alert) for alert in ALERTS)


def _rule(alert: Alert) -> dict[str, object]:
    return {
        "alert": alert.name,
        "expr": alert.expression,
        "for": f"{alert.wait_s}s",
        "labels": {"severity": alert.severity},
        "annotations": {
            "summary": alert.summary,
            "description": f"{alert.meaning} {alert.action}",
            "runbook": f"{_PAGE}#{alert.name.lower()}",
        },
    }


def _rule_test(alert: Alert, series: dict[str, str], *, fires: bool) -> dict[str, object]:
    # That it fires is asked of ALERTS, which carries only labels: texts stand in the rules once.
    firing = f'count(ALERTS{{alertname="{alert.name}",alertstate="firing"}})'
    samples = [{"labels": "{}", "value": 1}] if fires else []
    return {
        "name": f"{alert.name} {'fires' if fires else 'keeps quiet'}",
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {"expr": firing, "eval_time": f"{_ENOUGH_MINUTES}m", "exp_samples": samples},
        ],
    }


def _section(alert: Alert) -> str:
    after = f", after {alert.wait_s} s" if alert.wait_s else ""
    return (
        f"\n## {alert.name}\n\n*{alert.severity}{after}*: `{alert.expression}`\n\n"
        f"{alert.meaning}\n\n**What to do.** {alert.action}\n"
    )


def _yaml(content: object) -> str:
    return yaml.safe_dump(content, sort_keys=False, width=1000, allow_unicode=True)


_RENDERED: dict[str, Callable[[], str]] = {
    "rules": render_rules,
    "tests": render_rule_tests,
    "page": render_alerts_page,
}

if __name__ == "__main__":
    sys.stdout.write(_RENDERED[sys.argv[1]]())
