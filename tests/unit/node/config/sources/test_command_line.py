import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.config.sources.command_line import ACTIONS, all_flags, parse_flags
from support.tools.configuration import SCHEMA, load, refusal


def test_every_knob_has_a_long_flag_in_both_spellings() -> None:
    flags = all_flags(SCHEMA)
    for knob in SCHEMA.knobs:
        assert flags[knob.long_flag] is knob
        assert "_" not in knob.long_flag
    assert load(["--limits.stop_max_bytes", "9"]).settings.limits.stop_max_bytes == 9
    assert load(["--limits.stop-max-bytes=9"]).settings.limits.stop_max_bytes == 9


def test_the_short_names_of_the_contract_exist() -> None:
    loaded = load(
        [
            "--http",
            "127.0.0.1:1",
            "--metrics",
            ":2",
            "--name",
            "n1",
            "--worker",
            "grpc://a:1",
            "--worker",
            "grpc://b:1",
            "--data-dir",
            "/d",
            "--policy",
            "random",
            "--demo",
        ]
    )
    settings = loaded.settings
    assert str(settings.http.listen) == "127.0.0.1:1"
    assert str(settings.http.metrics_listen) == "0.0.0.0:2"
    assert settings.name == "n1"
    assert settings.workers.urls == ("grpc://a:1", "grpc://b:1")
    assert str(settings.data_dir) == "/d"
    assert settings.routing.policy == "random"
    assert settings.demo is True


def test_names_known_from_other_gateways_mean_the_same() -> None:
    settings = load(
        [
            "--worker-urls",
            "grpc://a:1",
            "grpc://b:1",
            "--log-level",
            "debug",
            "--request-timeout-secs",
            "60",
            "--max-payload-size",
            "4096",
            "--health-failure-threshold=7",
            "--cors-allowed-origins",
            "http://a",
            "http://b",
        ]
    ).settings
    assert settings.workers.urls == ("grpc://a:1", "grpc://b:1")
    assert settings.telemetry.log_level == "debug"
    assert settings.engine.request_s == 60
    assert settings.http.body_max_bytes == 4096
    assert settings.workers.down_after == 7
    assert settings.http.cors_allowed_origins == ("http://a", "http://b")


@pytest.mark.parametrize(
    ("argv", "value"),
    [
        (["--demo"], True),
        (["--demo", "--name", "x"], True),
        (["--demo=false"], False),
        (["--demo", "off"], False),
        (["--demo", "--no-demo"], False),
        (["--no-demo", "--demo"], True),
    ],
)
def test_a_switch_is_turned_on_and_off(argv: list[str], value: bool) -> None:
    assert load(argv).settings.demo is value


def test_a_long_switch_is_turned_off_too() -> None:
    assert load(["--no-telemetry.access_log"]).settings.telemetry.access_log is False
    assert load(["--telemetry.access-log", "no"]).settings.telemetry.access_log is False


def test_of_a_scalar_given_twice_the_last_counts() -> None:
    loaded = load(["--name", "a", "--name=b"])
    assert loaded.settings.name == "b"


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["--no-such", "0.0.0.0:7946"], "--no-such: there is no such flag (command line)"),
        (["--vault", "memory:"], "--vault: there is no such flag (command line)"),
        (["--rooms", "4"], "--rooms: there is no such flag (command line)"),
        (
            ["--wroker", "x"],
            "--wroker: there is no such flag; did you mean --worker? (command line)",
        ),
        (["--stream.keepalive", "1"], "did you mean --stream.keepalive-s?"),
        (["--keepalive-s", "1"], "did you mean --stream.keepalive-s?"),
        (["--l0_entries", "1"], "did you mean --tokens.l0-entries?"),
        (["--models.x.contxt", "1"], "--models.x.contxt: there is no such flag"),
        (["--models.NAME", "1"], "--models.NAME: there is no such flag"),
        (["--no-name"], "--no-name: there is no such flag"),
        (["--no-demo=true"], "--no-demo: it takes no value"),
        (["--name"], "--name: it needs a value"),
        (["--name", "--demo"], "--name: it needs a value"),
        (["--config"], "--config: it needs a value"),
        (["--worker"], "--worker: it needs at least one value"),
        (["--check=1"], "--check: it takes no value"),
        (["oops"], "oops: this word belongs to no flag"),
        (["grpc://a:1"], "workers are given by --worker grpc://a:1"),
        (["-w", "--demo"], "-w: flags begin with two hyphens"),
        (["--"], "--: there is no such flag"),
        (["--demo=maybe"], "demo: it must be true or false, got 'maybe' (flag --demo)"),
    ],
)
def test_a_line_that_cannot_be_meant_is_refused(argv: list[str], line: str) -> None:
    (found,) = refusal(argv)
    assert line in found


def test_a_negative_number_is_a_value_and_not_a_flag() -> None:
    (line,) = refusal(["--stream.keepalive-s", "-1"])
    assert line.startswith("stream.keepalive_s: -1 is out of range")


def test_a_model_named_in_a_flag_keeps_its_dots_and_underscores() -> None:
    loaded = load(["--models.org/My_Model-3.1.prompt-max-tokens", "7"])
    assert loaded.settings.models["org/My_Model-3.1"].prompt_max_tokens == 7
    loaded = load(["--models.org/My_Model-3.1.mcp.expose", "--models.mcp.context", "9"])
    assert loaded.settings.models["org/My_Model-3.1"].mcp.expose
    assert loaded.settings.models["mcp"].context == 9


@pytest.mark.parametrize("word", [*ACTIONS, "-h", "-V"])
def test_actions_are_seen_anywhere(word: str) -> None:
    action = {"-h": "--help", "-V": "--version"}.get(word, word)
    assert parse_flags(["--demo", word, "--name", "x"], SCHEMA).action == action


def test_help_outweighs_every_other_action() -> None:
    assert parse_flags(["--check", "--help", "--print-config"], SCHEMA).action == "--help"


_WORDS = st.sampled_from(
    [
        *all_flags(SCHEMA),
        *ACTIONS,
        "--no-demo",
        "--",
        "-",
        "",
        "=",
        "--=",
        "--models.",
        "--models..x",
    ]
) | st.text(max_size=12)


@given(st.lists(_WORDS | st.tuples(_WORDS, _WORDS).map("=".join), max_size=8))
def test_any_command_line_gives_entries_or_problems_and_never_an_exception(
    argv: list[str],
) -> None:
    asked = parse_flags(argv, SCHEMA)
    known = {knob.path for knob in SCHEMA.knobs}
    for entry in asked.entries:
        assert entry.path in known or entry.path[0] == "models"
    assert (
        asked.problems or asked.entries or asked.halves or asked.action or not argv or asked.config
    )
