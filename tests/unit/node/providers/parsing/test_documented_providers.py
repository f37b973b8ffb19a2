"""What the page about vendors tells operators to write can be written: every definition in it is taken as it stands."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from smg_node.cluster.providers.definitions import read_own
from smg_node.config.schema.plain_yaml import read_plain
from smg_node.providers.hosting import HOSTINGS
from smg_node.providers.parsing.spec_parser import parse_provider
from smg_node.providers.route_spec import CLASSES

_PAGE = (Path(__file__).parents[5] / "docs/providers.md").read_text(encoding="utf-8")
_ROW = re.compile(r"^\| `(\w+)` \| [^|]+ \| `(\{kind: [^`]+\})` \|$", re.M)
_ROWS = _ROW.findall(_PAGE)


@pytest.mark.parametrize(("kind", "written"), _ROWS)
def test_a_definition_of_the_table_is_of_its_kind(kind: str, written: str) -> None:
    parsed = parse_provider("a", read_plain(written))
    assert parsed.spec.kind == kind


def test_every_kind_has_its_row() -> None:
    assert [kind for kind, _ in _ROWS] == list(HOSTINGS)


def test_the_file_of_the_page_defines_what_it_says() -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```$", _PAGE, re.M | re.S)
    said: Any = read_plain("\n".join(blocks))
    found = read_own(json.dumps(said))
    assert sorted(found.prices) == [
        "anthropic-a/claude-sonnet-5",
        "claude",
        "openai-a/gpt-5.6-sol",
    ]
    assert sorted(found.providers) == ["anthropic-a", "bedrock-eu", "local"]
    assert [(one.provider, one.weight, one.on) for one in found.routes["claude"].spec.targets] == [
        ("anthropic-a", 3.0, ()),
        ("bedrock-eu", 1.0, ("rate", "full")),
    ]


def test_all_kinds_of_failure_are_named() -> None:
    for name in CLASSES:
        assert f"`{name}`" in _PAGE
