"""Files of keys: what each format says, and what is wrong with it by line and column."""

import hashlib
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.access.foreign_key import sha256_of
from smg_node.admin.key_files.key_row import PROBLEMS_MAX, KeyFile, KeyRow
from smg_node.admin.key_files.key_table import read_key_table
from smg_node.admin.key_files.key_values import expires_of
from smg_node.admin.key_files.litellm_export import read_litellm_export
from smg_node.admin.key_files.smg_values import read_smg_values

READERS = {"smg": read_smg_values, "litellm": read_litellm_export, "csv": read_key_table}
KEY = "sk-0123456789abcdefghijklmnopqrstuv"
SHA = hashlib.sha256(KEY.encode()).hexdigest()


def only(found: KeyFile) -> KeyRow:
    assert found.problems == []
    (row,) = found.rows
    return row


def problems(found: KeyFile) -> list[str]:
    said = [str(problem) for problem in found.problems]
    assert not any(KEY in line for line in said)
    return said


# ── SMG ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("line", "tenant", "role", "name"),
    [
        (f"acme:{KEY}", "acme", "user", ""),
        (f"  acme:{KEY}\r", "acme", "user", ""),
        (f"--tenant-api-key acme:{KEY}", "acme", "user", ""),
        (f"--tenant-api-key='acme:{KEY}'", "acme", "user", ""),
        (f"svc1:CI Pipeline:admin:{KEY}", "", "admin", "CI Pipeline"),
        (f"svc1::admin:{KEY}", "", "admin", "svc1"),
        (f"svc2:Read Only:user:{KEY}", "svc2", "user", "Read Only"),
        (f'--control-plane-api-keys "svc2:Read Only:user:{KEY}"', "svc2", "user", "Read Only"),
    ],
)
def test_values_of_smg_are_read(line: str, tenant: str, role: str, name: str) -> None:
    row = only(read_smg_values(f"# ours\n\n{line}\n", tenant=""))
    assert row == KeyRow(3, SHA, tenant, role, name)


@pytest.mark.parametrize("key", ["a=b:c=d" * 6, "x:admin=y-0123456789abcdefg", "'quote'-012345678"])
def test_a_key_of_smg_is_taken_as_it_is_with_all_its_signs(key: str) -> None:
    for line in (f"acme:{key}", f"--tenant-api-key acme:{key}", f"--tenant-api-key=acme:{key}"):
        assert only(read_smg_values(line, tenant="")).sha256 == sha256_of(key).hex()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("acme", "line 1: neither TENANT:KEY"),
        (f"no tenant:{KEY}", "line 1, column TENANT: a tenant is"),
        ("acme:short", "line 1, column KEY: a key of 5 characters can be guessed"),
        ("acme:" + "smg-x-" + "s" * 43, "line 1, column KEY: a key that begins with smg-"),
        (f"--control-plane-api-keys a:b:operator:{KEY}", "line 1, column ROLE: its role"),
        (f"--control-plane-api-keys a:b:{KEY}", "line 1: it is not ID:NAME:ROLE:KEY"),
        (f"a b:c:user:{KEY}", "line 1, column ID: a tenant is"),
    ],
)
def test_values_of_smg_that_will_not_do_are_refused(line: str, said: str) -> None:
    (found,) = problems(read_smg_values(line, tenant=""))
    assert found.startswith(said)


# ── LiteLLM ──────────────────────────────────────────────────────────────────


def test_an_export_of_litellm_is_read() -> None:
    text = (
        "token,key_alias,team_id,expires,models\r\n"
        f"{SHA},checkout,team-1,2027-01-31 12:00:00,{{}}\r\n"
        f'{"b" * 64},"Übung, zwei",,,"{{gpt-4o,""a \\""b""}}"\r\n'
    )
    found = read_litellm_export(text, tenant="acme")
    assert found.problems == []
    assert found.rows == [
        KeyRow(2, SHA, "team-1", "user", "checkout", 1_801_396_800_000),
        KeyRow(3, "b" * 64, "acme", "user", "?bung, zwei", None, ("gpt-4o", 'a "b')),
    ]


def test_blocked_keys_are_left_out_and_other_columns_passed_over() -> None:
    text = f"spend,token,blocked,team_id\n0.1,{SHA},t,a\n0.2,{'c' * 64},f,a\n0.3,{'d' * 64},,a\n"
    found = read_litellm_export(text, tenant="")
    assert (found.problems, found.blocked) == ([], 1)
    assert [row.line for row in found.rows] == [3, 4]


def test_a_token_that_still_stands_there_plain_is_taken_by_its_digest() -> None:
    assert only(read_litellm_export(f"token,team_id\n{KEY},a\n", tenant="")).sha256 == SHA


@pytest.mark.parametrize(
    ("models", "read"),
    [
        ("", ()),
        ("[]", ()),
        ("{all-proxy-models}", ()),
        ('"[""a"", ""b""]"', ("a", "b")),
        ('"{a,""b,c""}"', ("a", "b,c")),
    ],
)
def test_lists_of_models_are_read_in_both_forms(models: str, read: tuple[str, ...]) -> None:
    text = f"token,team_id,models\n{SHA},a,{models}\n"
    assert only(read_litellm_export(text, tenant="")).models == read


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("xyz,a,,", "line 2, column token: not 64 hexadecimal digits"),
        ("sk-short,a,,", "line 2, column token: a key of 8 characters"),
        (f"{SHA},,,", "line 2, column team_id: a key of role user belongs to a tenant"),
        (f"{SHA},a b,,", "line 2, column team_id: 'a b' is no tenant"),
        (f"{SHA},a,soon,", "line 2, column expires: 'soon' is no time"),
        (f"{SHA},a,,gpt-4", "line 2, column models: neither {a,b} nor"),
        (f'{SHA},a,,"{{""a}}"', "line 2, column models: its quotes"),
        (f"{SHA},a", "line 2: 2 fields, where the header has 4"),
        (f'{SHA},"a', "line 2: this is no CSV"),
    ],
)
def test_rows_of_litellm_that_will_not_do_are_refused(row: str, said: str) -> None:
    found = problems(read_litellm_export(f"token,team_id,expires,models\n{row}\n", tenant=""))
    assert len(found) == 1
    assert found[0].startswith(said)


# ── CSV ──────────────────────────────────────────────────────────────────────


def test_a_table_is_read_whatever_the_order_of_its_columns() -> None:
    text = (
        "sha256,key,Role,tenant,name,expires\n"
        f",{KEY},,acme,one,never\n"
        "\n"
        f"{'A' * 64},,admin,,two,2027-01-31T00:00:00+01:00\n"
    )
    assert read_key_table(text, tenant="").rows == [
        KeyRow(2, SHA, "acme", "user", "one"),
        KeyRow(4, "a" * 64, "", "admin", "two", 1_801_350_000_000),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: the file is empty, where a header of tenant, role,"),
        ("tenant,secret\n", "line 1: the header has other columns than tenant, role"),
        (f"{KEY},acme\n", "line 1: the header has other columns than tenant, role"),
        ("tenant,tenant\n", "line 1: the header names a column twice"),
        (f"tenant,key,sha256\na,{KEY},{SHA}\n", "line 2, column key: one of key and sha256"),
        ("tenant,key\na,\n", "line 2, column key: one of key and sha256"),
        (f"tenant,key,role\na,{KEY},no role\n", "line 2, column role: 'no role' is no role"),
        (f"tenant,sha256\na,{SHA}\nb,{SHA}\n", "line 3: the key of line 2 again"),
        (f"tenant,key\na,{KEY},\n", "line 2: 3 fields, where the header has 2"),
    ],
)
def test_tables_that_will_not_do_are_refused(text: str, said: str) -> None:
    found = problems(read_key_table(text, tenant=""))
    assert found[0].startswith(said)


def test_the_same_row_twice_is_one_key() -> None:
    text = f"tenant,sha256\na,{SHA}\na,{SHA}\n"
    assert only(read_key_table(text, tenant="")).line == 2


def test_short_keys_are_marked_and_problems_bounded() -> None:
    assert only(read_key_table("tenant,key\na,0123456789abcdef\n", tenant="")).short
    assert not only(read_key_table(f"tenant,key\na,{KEY}\n", tenant="")).short
    many = "tenant,key\n" + "a,short\n" * (PROBLEMS_MAX + 9)
    assert len(read_key_table(many, tenant="").problems) == PROBLEMS_MAX


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2027-01-31", 1_801_353_600_000),
        ("2027-01-31T00:00:00Z", 1_801_353_600_000),
        ("2027-01-31 00:00:00+00", 1_801_353_600_000),
        ("2027-01-31 00:00:00.5+00:00", 1_801_353_600_500),
        ("2027-01-31 02:00:00-02", 1_801_368_000_000),
        ("", None),
        ("NULL", None),
    ],
)
def test_times_are_read_as_databases_write_them(text: str, moment: int | None) -> None:
    assert expires_of(text) == moment


# ── Anything ─────────────────────────────────────────────────────────────────

_ALPHABET = string.printable + "é\x00\u2028"


@given(st.sampled_from(sorted(READERS)), st.text(alphabet=_ALPHABET, max_size=400))
def test_any_text_is_rows_or_problems_with_a_line(origin: str, text: str) -> None:
    lines = text.count("\n") + text.count("\r") + 1
    found = READERS[origin](text, tenant="t")
    for row in found.rows:
        assert len(row.sha256) == 64
        assert 1 <= row.line <= lines
    for problem in found.problems:
        assert 1 <= problem.line <= lines + 1
        assert "\n" not in str(problem)


@given(
    st.sampled_from(["litellm", "csv"]),
    st.lists(st.text(alphabet='{},"\\ab0:-T+Z', max_size=30), min_size=5, max_size=5),
)
def test_any_fields_are_a_row_or_a_problem(origin: str, fields: list[str]) -> None:
    header = {
        "litellm": "token,key_alias,team_id,expires,models",
        "csv": "tenant,role,name,sha256,expires",
    }
    quoted = ",".join('"' + field.replace('"', '""') + '"' for field in fields)
    found = READERS[origin](f"{header[origin]}\n{quoted}\n", tenant="t")
    assert len(found.rows) + len(found.problems) == 1 or not any(field.strip() for field in fields)


@given(st.binary(max_size=300).map(lambda raw: raw.decode("latin-1")))
def test_any_bytes_are_no_time_or_one(text: str) -> None:
    try:
        moment = expires_of(text)
    except ValueError:
        return
    assert moment is None or moment > 0
