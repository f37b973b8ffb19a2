"""What the guides to access, discovery and security tell operators to write is taken, and their tables name what there is."""

import re
from pathlib import Path

import pytest

from smg_node.access.restrictions import APIS
from smg_node.core.access.permissions import BUILT_IN, PERMISSIONS
from support.tools.configuration import load

_DOCS = Path(__file__).parents[4] / "docs"
_SETTINGS = [
    (page, number, block)
    for page in ("access", "discovery", "security")
    for number, block in enumerate(
        re.findall(r"^```yaml\n(.*?)^```$", (_DOCS / f"{page}.md").read_text("utf-8"), re.M | re.S)
    )
]
_ACCESS = (_DOCS / "access.md").read_text("utf-8")


@pytest.mark.parametrize(("page", "number", "block"), _SETTINGS)
def test_settings_of_a_page_are_taken_as_they_stand(
    page: str, number: int, block: str, tmp_path: Path
) -> None:
    file = tmp_path / f"{page}-{number}.yaml"
    file.write_text(block, encoding="utf-8")
    assert load(["--config", str(file)]).settings != load().settings


def test_the_table_of_permissions_has_each_of_them_and_says_whose_it_is() -> None:
    head = re.findall(r"`(\w+)`", _ACCESS.partition("| Permission ")[2].partition("\n")[0])
    assert head == list(BUILT_IN)
    rows = _ACCESS.partition("| Permission ")[2].partition("\n\n")[0].splitlines()[2:]
    found = []
    for row in rows:
        named, _, *held = [cell.strip() for cell in row.strip("|").split("|")]
        words = re.findall(r"`([\w.]+)`", named)
        found += words
        assert held == ["yes" if BUILT_IN[role] >= {*words} else "" for role in BUILT_IN]
    assert found == list(PERMISSIONS)


def test_the_restriction_of_routes_names_every_api() -> None:
    row = next(line for line in _ACCESS.splitlines() if line.startswith("| `--routes"))
    assert re.findall(r"`(\w+)`", row.partition(":")[2].partition("|")[0]) == list(APIS)
