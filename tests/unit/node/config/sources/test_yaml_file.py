from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smg_node.config.schema.problems import ConfigurationError
from smg_node.config.sources.yaml_file import read_file
from support.tools.configuration import SCHEMA, load, refusal, write_yaml
from support.tools.example_counts import example_count


def _refused(folder: Path, text: str) -> list[str]:
    file = write_yaml(folder, text)
    return [line.replace(file, "FILE") for line in refusal(["--config", file])]


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    file = write_yaml(
        tmp_path,
        """\
        # comment
        name: node-1
        http: {listen: "[::1]:30000", expose_routing_headers: no}
        stream:
          keepalive_s: 7.5
        workers:
          urls:
            - grpc://a:1?role=prefill
            - grpc://b:1
          down_after: "4"
        limits:
          # everything in here is commented out
        drain: {grace_s: 1_0}
        """,
    )
    settings = load(["--config", file]).settings
    assert settings.name == "node-1"
    assert str(settings.http.listen) == "[::1]:30000"
    assert settings.http.expose_routing_headers is False
    assert settings.stream.keepalive_s == 7.5
    assert settings.workers.urls == ("grpc://a:1?role=prefill", "grpc://b:1")
    assert settings.workers.down_after == 4
    assert settings.drain.grace_s == 10


@pytest.mark.parametrize("text", ["", "# nothing", "---\n", "{}"])
def test_an_empty_file_says_nothing(tmp_path: Path, text: str) -> None:
    assert load(["--config", write_yaml(tmp_path, text)]).origins == {}


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfname: x\r\n")
    assert load(["--config", str(path)]).settings.name == "x"


def test_anchors_within_reason_are_understood(tmp_path: Path) -> None:
    file = write_yaml(tmp_path, "models:\n  a: &m {context: 5}\n  b: *m\n")
    assert load(["--config", file]).settings.models["b"].context == 5


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("http:\n\tlisten: :1\n", "a tab cannot indent YAML; use blanks (file FILE, line 2)"),
        ("http:\n  listen: [::1]:5\n", "an address with brackets needs quotes (file FILE, line 2)"),
        ("a: b: c\n", "this is not YAML"),
        ("name: x\n---\nname: y\n", "this is not YAML"),
        ("name: 'x", "this is not YAML"),
        ("name: \x00", "this is not YAML"),
        (
            "name: x\nname: y\n",
            "name: it is given twice, the first time in line 1 (file FILE, line 2)",
        ),
        ("http:\n  nesting_max: 9\nhttp:\n  nesting_max: 9\n", "http: it is given twice"),
        ("- a\n- b\n", "it must be a section"),
        ("just words", "it must be a section"),
        ("http: 5\n", "http: it must be a section"),
        ("http: [listen]\n", "http: it must be a section"),
        ("models: {a: 5}\n", "models.a: it must be a section"),
        ("? [a, b]\n: 1\n", "a key must be one word"),
        ("base: &b {nesting_max: 9}\nhttp:\n  <<: *b\n", "merge keys are not understood"),
        ("htpp:\n  listen: ':1'\n", "htpp: there is no such knob; did you mean 'http'?"),
        ("http:\n  keepalive_s: 5\n", "did you mean 'stream.keepalive_s'?"),
        ("stream.keepalive_s: 5\n", "dots do not nest in YAML; write one level a line, indented"),
        ("name: !!python/object/apply:os.system ['true']\n", "is not understood"),
        ("name: !env HOME\n", "is not what YAML takes it for"),
        ("name: !!int x\n", "is not what YAML takes it for"),
        ("name: 2024-99-99\n", "is not what YAML takes it for; put quotes around it"),
        ("name: 2024-01-01\n", "it must be text, got '2024-01-01'; put quotes"),
        ("name: no\n", "got false (YAML reads yes, no, on and off as booleans); put quotes"),
        ("name:\n", "name: it has no value (null)"),
        ("data_dir: ~\n", "data_dir: it has no value (null)"),
        ("demo: 1\n", "demo: it must be true or false, got the number 1"),
        ("http: {nesting_max: true}\n", "must be a whole number, got true"),
        ("http: {nesting_max: 9.5}\n", "must be a whole number, got the number 9.5"),
        ("http: {nesting_max: [9]}\n", "must be a whole number, got a list"),
        ("stream: {keepalive_s: .inf}\n", "inf is out of range"),
        ("stream: {keepalive_s: .nan}\n", "nan is out of range"),
        ("workers: {urls: grpc://a:1}\n", "it must be a list, got the text 'grpc://a:1'"),
        ("workers: {urls: {a: b}}\n", "it must be a list, got a section"),
        ("workers: {urls: [[a]]}\n", "its entries must be text, got a list"),
        ("workers: {urls: &u [*u]}\n", "nested too deeply or unfolds to too much"),
        ("telemetry: {log_level: 5}\n", "it must be text, got the number 5"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "smg.yaml"
    path.write_text(text, encoding="utf-8")
    lines = [found.replace(str(path), "FILE") for found in refusal(["--config", str(path)])]
    assert any(line in found for found in lines), lines
    assert all("FILE" in found for found in lines)


def test_a_file_that_unfolds_without_end_is_refused_quickly(tmp_path: Path) -> None:
    bomb = "b0: &b0 [x, x]\n"
    rows = [f"b{n}: &b{n} [*b{n - 1}, *b{n - 1}, *b{n - 1}]" for n in range(1, 14)]
    lines = _refused(tmp_path, bomb + "\n".join(rows) + "\nworkers: {urls: *b13}\n")
    assert any("unfolds to too much" in line for line in lines)


def test_a_file_nested_without_end_is_refused(tmp_path: Path) -> None:
    assert _refused(tmp_path, "[" * 5000) == ["FILE: it is nested too deeply"]


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"\xff\xfe", "not UTF-8"), (b"#" * 4_194_305, "larger than 4194304 bytes")],
)
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    (line,) = refusal(["--config", str(path)])
    assert words in line


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (line,) = refusal(["--config", str(tmp_path)])
    assert line == f"{tmp_path}: cannot read the file: is a directory (flag --config)"


_YAML = st.text(alphabet="abhtpnmelisurkx:{}[],-#&*!|>'\"%@?~ \n\t0123.<", max_size=120) | st.text(
    max_size=60
)


@settings(
    max_examples=example_count(150), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(_YAML)
def test_any_text_gives_entries_or_problems_and_never_another_exception(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "any.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        _, problems = read_file(path, SCHEMA, named_by="")
    except ConfigurationError as error:
        problems = list(error.problems)
    assert all("\n" not in str(problem) for problem in problems)
