from pathlib import Path

from smg_node.http.openapi.route_reference import render_routes_reference
from smg_node.http.route_table import METRICS_ROUTES, ROUTES

_PAGE = Path(__file__).parents[5] / "deploy/reference/http.md"


def test_the_page_of_routes_is_current() -> None:
    assert _PAGE.read_text(encoding="utf-8") == render_routes_reference(), "run: make reference"


def test_every_route_has_its_row() -> None:
    rows = [line for line in render_routes_reference().splitlines() if line.startswith("| ")]
    assert len(rows) == len(ROUTES) + len(METRICS_ROUTES) + 2
    assert "| GET | `/v1/models/{id}` |  | models | Show one model |" in rows
