from pathlib import Path

from smg_node.core.errors import DEFAULT_CODE, HTTP_STATUS, ErrorKind
from smg_node.http.openapi.error_reference import render_errors_reference

_PAGE = Path(__file__).parents[5] / "deploy/reference/errors.md"


def test_the_page_of_errors_is_current() -> None:
    assert _PAGE.read_text(encoding="utf-8") == render_errors_reference(), "run: make reference"


def test_every_kind_of_error_has_its_row_with_what_to_do() -> None:
    lines = render_errors_reference().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    told = {row[1]: row for row in rows if len(row) == 5}
    for kind in ErrorKind:
        status, _, code, means, remedy = told[f"`{kind.value}`"]
        assert status == str(HTTP_STATUS[kind])
        assert code == f"`{DEFAULT_CODE[kind]}`"
        assert means
        assert remedy
