from itertools import product
from pathlib import Path

import pytest

from smg_node.config.address import Address
from smg_node.config.schema.problems import ConfigurationError, Problem
from support.tools.configuration import load, refusal, write_yaml

_LAYERS = ("file", "environment", "flag")


@pytest.mark.parametrize("said", list(product([False, True], repeat=3)))
def test_the_last_layer_that_has_user_text_counts(
    tmp_path: Path, said: tuple[bool, bool, bool]
) -> None:
    in_file, in_environment, in_flag = said
    argv, environ = [], {}
    if in_file:
        argv += ["--config", write_yaml(tmp_path, "stream:\n  keepalive_s: 1\n")]
    if in_environment:
        environ["SMG_STREAM__KEEPALIVE_S"] = "2"
    if in_flag:
        argv += ["--stream.keepalive-s", "3"]
    loaded = load(argv, environ)
    expected = next((n for n in (3, 2, 1) if said[n - 1]), 15)
    assert loaded.settings.stream.keepalive_s == expected
    origin = loaded.origins.get(("stream", "keepalive_s"), "")
    assert origin.startswith(_LAYERS[expected - 1] if expected < 15 else "")


def test_layers_merge_knob_by_knob_and_model_by_model(tmp_path: Path) -> None:
    file = write_yaml(
        tmp_path,
        """
        http:
          listen: 127.0.0.1:1
          nesting_max: 64
        models:
          a/b.c: {context: 10, aliases: [x]}
          bare:
        """,
    )
    loaded = load(
        ["--config", file, "--http.nesting_max=32", "--models.a/b.c.context", "30"],
        {"SMG_MODELS": '{"a/b.c": {"context": 20, "prompt_max_tokens": 5}, "other": {}}'},
    )
    assert loaded.settings.http.listen == Address("127.0.0.1", 1)
    assert loaded.settings.http.nesting_max == 32
    model = loaded.settings.models["a/b.c"]
    assert (model.context, model.prompt_max_tokens, model.aliases) == (30, 5, ("x",))
    assert sorted(loaded.settings.models) == ["a/b.c", "bare", "other"]
    assert loaded.origins["models", "a/b.c", "prompt_max_tokens"] == "environment SMG_MODELS"
    assert loaded.origins["models", "a/b.c", "aliases"] == f"file {file}, line 6"


def test_a_list_is_replaced_by_a_higher_layer(tmp_path: Path) -> None:
    file = write_yaml(tmp_path, "workers: {urls: ['grpc://a:1', 'grpc://b:1']}")
    assert load(["--config", file]).settings.workers.urls == ("grpc://a:1", "grpc://b:1")
    assert load(["--config", file, "--worker", "grpc://c:1"]).settings.workers.urls == (
        "grpc://c:1",
    )


def test_the_environment_names_the_file_and_a_flag_outweighs_it(tmp_path: Path) -> None:
    file = write_yaml(tmp_path, "name: from-file")
    assert load([], {"SMG_CONFIG": file}).settings.name == "from-file"
    assert load([], {"SMG_CONFIG": file}).file == Path(file)
    (line,) = refusal(["--config", str(tmp_path / "none.yaml")], {"SMG_CONFIG": file})
    assert "none.yaml: cannot read the file: no such file or directory (flag --config)" in line
    (line,) = refusal([], {"SMG_CONFIG": str(tmp_path / "none.yaml")})
    assert line.endswith("(environment SMG_CONFIG)")


def test_host_and_port_are_halves_of_whatever_address_lies_below(tmp_path: Path) -> None:
    assert load(["--port", "8000"]).settings.http.listen == Address("0.0.0.0", 8000)
    assert load(["--host", "::1", "--port=1"]).settings.http.listen == Address("::1", 1)
    environ = {"SMG_HTTP__LISTEN": "[::1]:5"}
    assert load(["--port", "8000"], environ).settings.http.listen == Address("::1", 8000)
    assert load(["--prometheus-port", "9"]).settings.http.metrics_listen == Address("0.0.0.0", 9)
    (line,) = refusal(["--http", ":1", "--port", "2"])
    assert line == "--port: it says the same as --http; give one of them (command line)"
    (line,) = refusal(["--port", "many"])
    assert line.startswith("http.listen: the port must be a number from 0 to 65535, got 'many'")
    (line,) = refusal(["--port", "2"], {"SMG_HTTP__LISTEN": "nowhere"})
    assert line.endswith("(environment SMG_HTTP__LISTEN)")


def test_everything_wrong_is_reported_in_one_go_with_its_place(tmp_path: Path) -> None:
    file = write_yaml(
        tmp_path,
        """\
        name: 123
        http:
          nesting_max: 1000
          quux: 1
        workers:
          urls: [grpc://a:1, ftp://b:2]
        telemetry: {log_level: warn}
        """,
    )
    lines = refusal(
        ["--config", file, "--engine.stall-s", "x", "--polcy", "random", "--drain.grace-s=-1"],
        {"SMG_STREAM__KEEPALIVE_S": "99999", "SMG_HTTP__LISTN": ":1"},
    )
    assert lines == [
        "--polcy: there is no such flag; did you mean --policy? (command line)",
        f"http.quux: there is no such knob (file {file}, line 4)",
        "SMG_HTTP__LISTN: no knob has this name; did you mean 'SMG_HTTP__LISTEN'? (environment)",
        f"name: it must be text, got the number 123; put quotes around it (file {file}, line 1)",
        "telemetry.log_level: it must be one of debug, info, warning, error, got 'warn';"
        f" did you mean 'warning'? (file {file}, line 7)",
        "engine.stall_s: it must be a number, got 'x' (flag --engine.stall-s)",
        "http.nesting_max: 1000 is out of range 8..512: a plain tool schema nests about 8 deep;"
        f" JSON readers give up near 1,000 (file {file}, line 3)",
        "stream.keepalive_s: 99999 is out of range 0.05..3600: more than 20 pings a second are load;"
        " proxies cut idle streams long before an hour (environment SMG_STREAM__KEEPALIVE_S)",
        "workers.urls: worker URL 'ftp://b:2': the scheme 'ftp' is unknown;"
        f" use grpc://host:port or http://host:port (file {file}, line 6)",
        "drain.grace_s: -1 is out of range 0..86400: 0 cuts them off at once;"
        " no answer runs longer than a day (flag --drain.grace-s)",
    ]


def test_two_knobs_that_contradict_each_other_are_both_named() -> None:
    (line,) = refusal(["--http", ":5", "--metrics", "0.0.0.0:5"])
    assert line == "http.listen and http.metrics_listen are both 0.0.0.0:5; they need two ports"


def test_a_list_that_is_too_long_is_refused() -> None:
    (line,) = refusal(["--request-id-headers", *(f"x-{n}" for n in range(17))])
    assert line.startswith("http.request_id_headers: it has more than 16 entries")


def test_a_model_name_that_cannot_be_one_is_named() -> None:
    (line,) = refusal([], {"SMG_MODELS": '{"": {"context": 5}}'})
    assert "'' is not a model name" in line
    assert line.endswith("(environment SMG_MODELS)")


def test_a_flood_of_problems_is_cut() -> None:
    environ = {f"SMG_NOSUCH{n:04}": "" for n in range(500)}
    lines = refusal([], environ)
    assert len(lines) == 51
    assert lines[-1] == "… and 450 more"


def test_a_problem_is_one_line_whatever_it_quotes() -> None:
    problem = Problem("a\nb", "c\x1b[2Jd", "file \n")
    assert str(problem) == "a\\nb: c\\x1b[2Jd (file \\n)"
    assert str(ConfigurationError([problem])) == str(problem)
