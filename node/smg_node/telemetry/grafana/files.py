"""Files for Grafana: JSON made from the declared dashboards.

`python -m smg_node.telemetry.grafana.files NAME` prints one of them; `tools/reference.sh` keeps them below
`deploy/grafana/dashboards`. They are what Grafana itself exports, so they can be imported by hand as well.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from smg_node.telemetry.grafana.dashboards import BOARDS
from smg_node.telemetry.grafana.panels import WIDTH, Board, Panel, Query, Section
from smg_node.telemetry.metrics.declared.node import BUILD

_SCHEMA: Final = 39
"""Of Grafana 10.4 and later, which take older ones too and bring them up to date."""
_SOURCE: Final[Mapping[str, str]] = {"type": "prometheus", "uid": "${datasource}"}
_HEIGHT: Final = 8
_LOW: Final = 4
"""How high a single number is."""
_TAG: Final = "smg-node"


def render_dashboard(board: Board) -> str:
    """Return a dashboard as Grafana takes it, ending with a line feed."""
    content: dict[str, Any] = {
        "uid": f"smg-node-{board.name}",
        "title": board.title,
        "description": f"{board.meaning} Generated from smg_node/telemetry/grafana/dashboards.py by `make reference`.",
        "tags": [_TAG],
        "timezone": "browser",
        "editable": True,
        "graphTooltip": 1,
        "schemaVersion": _SCHEMA,
        "version": 1,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "links": [_link()],
        "templating": {"list": list(_variables())},
        "annotations": {"list": []},
        "panels": _placed(board.sections),
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _link() -> Mapping[str, Any]:
    """Return what leads from each dashboard to the others, with the same nodes and the same time."""
    return {
        "type": "dashboards",
        "tags": [_TAG],
        "title": "smg-node",
        "asDropdown": True,
        "includeVars": True,
        "keepTime": True,
        "icon": "external link",
        "tooltip": "",
        "url": "",
        "targetBlank": False,
    }


def _variables() -> Iterator[Mapping[str, Any]]:
    yield {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    yield _chooser("job", "Job", f"label_values({BUILD.name}, job)")
    yield _chooser("node", "Node", f'label_values({BUILD.name}{{job=~"$job"}}, instance)')


def _chooser(name: str, label: str, query: str) -> Mapping[str, Any]:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        # Again whenever the time changes: nodes come and go.
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _placed(sections: Sequence[Section]) -> list[Mapping[str, Any]]:
    """Return headings and panels, in rows from left to right."""
    placed: list[Mapping[str, Any]] = []
    y = 0
    for section in sections:
        placed.append(_heading(len(placed) + 1, section.title, y))
        y += 1
        x = height = 0
        for panel in section.panels:
            if x + panel.width > WIDTH:
                x, y = 0, y + height
                height = 0
            high = _LOW if panel.kind == "stat" else _HEIGHT
            placed.append(
                _panel(len(placed) + 1, panel, {"x": x, "y": y, "w": panel.width, "h": high})
            )
            x, height = x + panel.width, max(height, high)
        y += height
    return placed


def _heading(number: int, title: str, y: int) -> Mapping[str, Any]:
    return {
        "id": number,
        "type": "row",
        "title": title,
        "collapsed": False,
        "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1},
        "panels": [],
    }


def _panel(number: int, panel: Panel, place: Mapping[str, int]) -> Mapping[str, Any]:
    bounds: dict[str, float] = {"min": 0} if panel.most is None else {"min": 0, "max": panel.most}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.meaning,
        "gridPos": place,
        "datasource": _SOURCE,
        "targets": [_target(at, query, panel) for at, query in enumerate(panel.queries)],
        "fieldConfig": {
            "defaults": {"unit": panel.unit, **bounds, "custom": _DRAWN.get(panel.kind, {})},
            "overrides": [],
        },
        "options": _OPTIONS[panel.kind],
    }


def _target(at: int, query: Query, panel: Panel) -> Mapping[str, Any]:
    # Of a number and of a table only now is of interest.
    now = panel.kind != "timeseries"
    return {
        "refId": chr(ord("A") + at),
        "datasource": _SOURCE,
        "expr": query.expression,
        "legendFormat": query.legend,
        "range": not now,
        "instant": now,
        **({"format": "table"} if panel.kind == "table" else {}),
    }


_DRAWN: Final[Mapping[str, Any]] = {
    "timeseries": {
        "drawStyle": "line",
        "lineWidth": 1,
        "fillOpacity": 8,
        "showPoints": "never",
        "spanNulls": False,
    }
}
_OPTIONS: Final[Mapping[str, Any]] = {
    "timeseries": {
        "legend": {
            "displayMode": "table",
            "placement": "bottom",
            "showLegend": True,
            "calcs": ["lastNotNull", "max"],
        },
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "stat": {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "textMode": "auto",
    },
    "table": {"showHeader": True, "cellHeight": "sm"},
}

if __name__ == "__main__":
    sys.stdout.write(render_dashboard(next(board for board in BOARDS if board.name == sys.argv[1])))
