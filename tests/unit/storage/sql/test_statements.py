"""Each statement has the tenant in it, and says on Oracle what is written down here.

There is no Oracle at hand to ask, so what it would be told is compared with what was looked over: `--rewrite` writes
it down anew.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy.engine import URL, Dialect
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.sql import Insert
from sqlalchemy.sql.elements import CompilerElement

from smg_storage.sql.schema.tables import Tables
from smg_storage.sql.statements.all_statements import Statements
from support.tools.transcripts import REWRITE_VARIABLE

WRITTEN: Final = Path(__file__).parent.parent / "oracle"
# About no tenant in particular: what is over, of whom nobody is left, and how much there is at all.
OF_ALL_TENANTS: Final = re.compile(r"runs\.orphans|upkeep\.(expired_|count_|revision|ping|stamp)")
DIALECTS: Final[Mapping[str, Dialect]] = {
    name: URL.create(driver).get_dialect()()
    for name, driver in (
        ("oracle", "oracle+oracledb"),
        ("postgresql", "postgresql+asyncpg"),
        ("sqlite", "sqlite+pysqlite"),
    )
}


def statements(dialect: str) -> Iterator[tuple[str, CompilerElement]]:
    everything = Statements(Tables(), dialect)
    for group, members in vars(everything).items():
        if not type(members).__name__.endswith("Statements"):
            continue
        for name, member in vars(members).items():
            yield from _parts(f"{group}.{name}", member)


def _parts(name: str, member: Any) -> Iterator[tuple[str, CompilerElement]]:
    if isinstance(member, Mapping):
        for (newest, after), part in member.items():
            order = "newest" if newest else "oldest"
            yield f"{name}.{order}{'_after' if after else ''}", part
    elif isinstance(member, tuple):
        for place, part in enumerate(member):
            yield f"{name}.{place}", part
    else:
        assert isinstance(member, CompilerElement), name
        yield name, member


def text(statement: CompilerElement, dialect: str) -> str:
    said = str(statement.compile(dialect=DIALECTS[dialect]))
    return re.sub(r"[ \t]+\n", "\n", said).strip()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_statement_is_about_one_tenant(dialect: str) -> None:
    seen = 0
    for name, statement in statements(dialect):
        said = text(statement, dialect)
        if OF_ALL_TENANTS.match(name):
            assert "of_tenant" not in str(statement)
            continue
        seen += 1
        if isinstance(statement, Insert):
            assert '"tenant"' in said, name
            continue
        # As often as tables are named, apart from what is joined to a row that has been found by its tenant.
        assert said.count('"tenant" =') == tables_in(said), f"{name}:\n{said}"
    assert seen > 40


def tables_in(said: str) -> int:
    named = re.findall(r'(?:FROM|JOIN|UPDATE) (?:chain JOIN )?\(?("\w+")', said)
    return len(named) if not said.startswith("WITH") else 3


@pytest.mark.parametrize("dialect", ["postgresql", "sqlite"])
def test_every_table_has_the_tenant_in_its_key(dialect: str) -> None:
    for table in Tables().by_name.values():
        assert next(iter(table.primary_key.columns)).key == "tenant"


def test_oracle_is_told_this() -> None:
    parts = [f"-- {name}\n{text(each, 'oracle')};\n" for name, each in statements("oracle")]
    compare("statements.sql", "\n".join(parts))


def test_oracle_has_these_tables() -> None:
    compare("tables.sql", "\n".join(f"{part.strip()};\n" for part in table_texts()))


def table_texts() -> list[str]:
    tables = Tables()
    parts: list[CompilerElement] = []
    for table in [*tables.by_name.values(), tables.version]:
        parts.append(CreateTable(table))
        parts += [CreateIndex(each) for each in sorted(table.indexes, key=lambda i: str(i.name))]
    return [text(part, "oracle") for part in parts]


def compare(name: str, said: str) -> None:
    path = WRITTEN / name
    if os.environ.get(REWRITE_VARIABLE) == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(said, encoding="utf-8")
    assert said == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "pitfall",
    [
        pytest.param(r"\bDATE\b", id="a DATE has neither zone nor fraction"),
        pytest.param(r"= ''|<> ''|!= ''", id="an empty string is NULL"),
        pytest.param(r"ON 1 (?!=)|ON true|\bTRUE\b", id="there is no truth value"),
        pytest.param(r"FETCH FIRST .* FOR UPDATE", id="what is counted off cannot be locked"),
        pytest.param(r"WITH RECURSIVE", id="recursion has no word of its own"),
        pytest.param(r"ON CONFLICT|\bLIMIT\b", id="words of others"),
        pytest.param(r"\b(CLOB|LONG)\b", id="text types have the charset of the database"),
    ],
)
def test_oracle_is_told_nothing_that_it_would_stumble_over(pitfall: str) -> None:
    everything = [text(each, "oracle") for _, each in statements("oracle")] + table_texts()
    assert len(everything) > 60
    for said in everything:
        assert not re.search(pitfall, said, re.DOTALL), said


def test_documents_are_not_carried_through_the_recursion() -> None:
    for dialect in DIALECTS:
        (chain,) = (each for name, each in statements(dialect) if name == "responses.chain")
        recursion = text(chain, dialect).partition("\n SELECT")[0]
        assert "input" not in recursion
        assert "raw_response" not in recursion
