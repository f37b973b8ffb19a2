import pytest

from smg_node.config.schema.knob import ANY_NAME
from smg_node.config.sources.environment import read_environment
from support.tools.configuration import SCHEMA, load, refusal


def test_every_knob_has_an_environment_name_of_its_own() -> None:
    names = [knob.environment for knob in SCHEMA.knobs if ANY_NAME not in knob.path]
    assert len(set(names)) == len(names)
    assert "SMG_HTTP__BODY_MAX_BYTES" in names


@pytest.mark.parametrize(
    "text",
    [
        "grpc://a:1,grpc://b:2",
        "grpc://a:1 grpc://b:2",
        " grpc://a:1,\n grpc://b:2, ",
        '["grpc://a:1", "grpc://b:2"]',
    ],
)
def test_a_list_may_be_written_with_commas_blanks_or_as_json(text: str) -> None:
    settings = load([], {"SMG_WORKERS__URLS": text}).settings
    assert settings.workers.urls == ("grpc://a:1", "grpc://b:2")


def test_an_empty_list_is_empty() -> None:
    environ = {"SMG_HTTP__REQUEST_ID_HEADERS": ""}
    assert load([], environ).settings.http.request_id_headers == ()


@pytest.mark.parametrize(("text", "value"), [("1", True), ("TRUE", True), ("off", False)])
def test_a_switch_is_a_word(text: str, value: bool) -> None:
    assert load([], {"SMG_DEMO": text}).settings.demo is value


@pytest.mark.parametrize("text", ["0.25", "25e-2", " .25 ", "+0.2_5".replace("_", "")])
def test_a_number_is_read_with_or_without_a_fraction(text: str) -> None:
    assert load([], {"SMG_STREAM__KEEPALIVE_S": text}).settings.stream.keepalive_s == 0.25


def test_an_integer_may_have_underscores() -> None:
    assert load([], {"SMG_HTTP__BODY_MAX_BYTES": "1_048_576"}).settings.http.body_max_bytes == 2**20


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("SMG_HTTP__NESTING_MAX", "", "must be a whole number, got ''"),
        ("SMG_HTTP__NESTING_MAX", "12.0", "must be a whole number"),
        ("SMG_HTTP__NESTING_MAX", "0x10", "must be a whole number"),
        ("SMG_HTTP__NESTING_MAX", "9" * 5000, "must be a whole number"),
        ("SMG_HTTP__NESTING_MAX", "٣", "must be a whole number"),
        ("SMG_STREAM__KEEPALIVE_S", "nan", "must be a number"),
        ("SMG_STREAM__KEEPALIVE_S", "1e999", "out of range"),
        ("SMG_STREAM__KEEPALIVE_S", "1s", "must be a number"),
        ("SMG_DEMO", "maybe", "must be true or false"),
        ("SMG_DATA_DIR", "", "must be a path"),
        ("SMG_WORKERS__URLS", '["a"', "not JSON"),
        ("SMG_WORKERS__URLS", "[1]", "its entries must be text"),
        ("SMG_MODELS", "x", "not JSON"),
        ("SMG_MODELS", "[]", "must be a JSON object"),
        ("SMG_MODELS", '{"a": 1}', "models.a: it must be a JSON object"),
        ("SMG_MODELS", '{"a": {"mcp": true}}', "models.a.mcp: it must be a JSON object"),
        ("SMG_MODELS", '{"a": {"mcp": {"expos": true}}}', "did you mean 'expose'?"),
        ("SMG_MODELS", '{"a": {"contxt": 1}}', "did you mean 'context'?"),
        ("SMG_MODELS", '{"a": {"context": null}}', "no value (null)"),
        ("SMG_MODELS", '{"a": {"context": {}}}', "must be a whole number, got a section"),
        ("SMG_MODELS", "[" * 100_000, "not JSON"),
        ("SMG_MODELS__A__CONTEXT", "5", "no knob has this name"),
        ("SMG_HTTP", "{}", "no knob has this name"),
        ("SMG_STREAM__KEEPALIVE", "5", "did you mean 'SMG_STREAM__KEEPALIVE_S'?"),
        ("SMG_http__listen", ":1", "no knob has this name"),
        ("SMG_", "", "no knob has this name"),
    ],
)
def test_what_cannot_be_meant_is_refused(name: str, text: str, words: str) -> None:
    (line,) = refusal([], {name: text})
    assert words in line
    assert name in line
    assert len(line) < 400


def test_names_of_other_commands_and_of_kubernetes_are_nobodys_typo() -> None:
    environ = {
        "SMG_ADMIN_URL": "http://h:1",
        "SMG_ADMIN_KEY": "k",
        "SMG_KEY": "k",
        "SMG_KEY_FILE": "f",
        "SMG_TOKEN_COMMAND": "c",
        "SMG_CA_FILE": "f",
        "SMG_SERVER_NAME": "h",
        "SMG_CERT_FILE": "f",
        "SMG_CERT_KEY_FILE": "f",
        "SMG_PORT": "tcp://10.0.0.1:30000",
        "SMG_SERVICE_HOST": "10.0.0.1",
        "SMG_NODE_SERVICE_HOST": "10.0.0.1",
        "SMG_NODE_SERVICE_PORT": "30000",
        "SMG_NODE_SERVICE_PORT_HTTP": "30000",
        "SMG_NODE_PORT": "tcp://10.0.0.1:30000",
        "SMG_NODE_PORT_30000_TCP": "tcp://10.0.0.1:30000",
        "SMG_NODE_PORT_30000_TCP_ADDR": "10.0.0.1",
        "PATH": "/bin",
        "smg_demo": "1",
    }
    assert read_environment(environ, SCHEMA) == ([], [])


def test_no_knob_looks_like_a_kubernetes_service() -> None:
    environ = {knob.environment: "x" for knob in SCHEMA.knobs if ANY_NAME not in knob.path}
    entries, problems = read_environment(environ, SCHEMA)
    assert len(entries) + len(problems) == len(environ)


def test_where_tests_find_their_servers_is_no_knob() -> None:
    assert read_environment({"SMG_TEST_POSTGRES_URL": "postgresql://x"}, SCHEMA) == ([], [])
    assert len(read_environment({"SMG_TESTS": "1"}, SCHEMA)[1]) == 1
