"""Asks a Prometheus for everything that the dashboards show, and says which query brings nothing, and why.

    .venv/bin/python tools/dashboards.py http://127.0.0.1:9090

It wants a Prometheus that scrapes a cluster at work and has `deploy/prometheus/recording.yaml` loaded. A query whose
metrics have series and which brings none is wrong: then the exit code is 1. One whose metrics have none yet is only
told, because nothing of that sort has happened.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

_BOARDS: Final = Path(__file__).parents[1] / "deploy" / "grafana" / "dashboards"
_NAME: Final = re.compile(r"(?:smg_node_|process_|smg:)[\w:]+")
_CHOSEN: Final = {"$__rate_interval": "1m", "$job": ".*", "$node": ".*"}
_ANSWER_S: Final = 30


def _asked(url: str, expression: str) -> tuple[int, str]:
    """Return how many series an expression brings, and why it was refused."""
    for variable, value in _CHOSEN.items():
        expression = expression.replace(variable, value)
    try:
        with urlopen(
            f"{url}/api/v1/query?{urlencode({'query': expression})}", timeout=_ANSWER_S
        ) as said:
            return len(json.load(said)["data"]["result"]), ""
    except HTTPError as error:
        return 0, error.read().decode("utf-8", "replace")[:300]


def _queries() -> Iterator[tuple[str, str, str]]:
    """Yield the dashboard, the panel and the expression of every query."""
    for file in sorted(_BOARDS.glob("*.json")):
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        for panel in content["panels"]:
            for target in panel.get("targets", ()):
                yield file.stem, panel["title"], target["expr"]


def main(url: str) -> int:
    """Ask for everything; return the exit code."""
    full = wrong = 0
    idle: list[str] = []
    for board, title, expression in _queries():
        series, refused = _asked(url, expression)
        if series:
            full += 1
            continue
        names = sorted(set(_NAME.findall(expression)))
        there = [name for name in names if _asked(url, f'{{__name__="{name}"}}')[0]]
        if refused or there == names:
            wrong += 1
            print(f"WRONG  {board}: {title}: {expression}\n       {refused or 'no series'}")
        else:
            idle.append(f"{board}: {title}: {', '.join(sorted(set(names) - set(there)))}")
    for line in idle:
        print(f"nothing yet  {line}")
    print(f"{full} queries bring series, {len(idle)} have nothing to show yet, {wrong} are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1].rstrip("/")))
