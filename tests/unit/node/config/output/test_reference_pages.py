import re
from pathlib import Path

import pytest
from pydantic import SecretStr

from smg_node.config.output import reference
from smg_node.config.output.effective_config import render_settings
from smg_node.config.output.help import render_help, render_help_all
from smg_node.config.output.startup_banner import render_banner, startup_facts
from smg_node.config.schema.declaration import Section, text
from smg_node.config.sources.command_line import ACTIONS
from smg_node.native import compiled
from support.tools.configuration import SCHEMA, load, write_yaml

_REFERENCE = Path(__file__).parents[5] / "deploy/reference/configuration.md"


def test_the_reference_is_current() -> None:
    assert _REFERENCE.read_text(encoding="utf-8") == reference.render_configuration_reference(), (
        f"run: python -m smg_node.config.output.reference --write {_REFERENCE}"
    )


def test_the_reference_has_one_row_for_every_knob() -> None:
    page = reference.render_configuration_reference()
    for knob in SCHEMA.knobs:
        rows = [line for line in page.splitlines() if line.startswith(f"| `{knob.dotted}` |")]
        assert len(rows) == 1
        assert f"`{knob.long_flag}`" in rows[0]
        assert f"`{knob.environment}`" in rows[0]
        assert rows[0].replace("\\|", "").count("|") == 8


def test_the_reference_is_written_where_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reference.main(["--write", str(tmp_path / "a" / "b.md")]) == 0
    assert reference.main([]) == 0
    assert capsys.readouterr().out == (tmp_path / "a" / "b.md").read_text(encoding="utf-8")
    assert reference.main(["--write"]) == 2


@pytest.mark.parametrize("width", [1, 80, 500])
def test_help_for_all_has_every_flag_exactly_once(width: int) -> None:
    page = render_help_all(SCHEMA, version="1.2.3", width=width)
    listed = re.findall(r"^  (--\S+)", page, re.MULTILINE)
    expected = [knob.long_flag for knob in SCHEMA.knobs] + ["--config", *ACTIONS]
    assert sorted(listed) == sorted(expected)
    flags = [flag for knob in SCHEMA.knobs for flag in knob.flags]
    assert all(flag in page for flag in flags)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_help_fits_the_terminal(width: int) -> None:
    for page in (
        render_help(SCHEMA, version="1.2.3", width=width),
        render_help_all(SCHEMA, version="1.2.3", width=width),
    ):
        # What cannot be broken (an example to copy, a long flag with its value) may stick out.
        long = [line for line in page.splitlines() if len(line) > width]
        assert all(line.lstrip().startswith(("smg-node ", "--")) for line in long), long


def test_help_shows_what_matters_first() -> None:
    page = render_help(SCHEMA, version="1.2.3", width=100)
    assert page.startswith("smg-node 1.2.3")
    order = ["Usage", "--worker URL", "--http HOST:PORT", "--config FILE", "Sections", "Examples"]
    places = [page.index(word) for word in order]
    assert places == sorted(places)
    assert "--stream.*" in page
    assert "--storage.*" in page
    assert "--storage.pool.*" not in page
    assert len(page.splitlines()) <= 110


def test_what_is_printed_can_be_given_back(tmp_path: Path) -> None:
    said = [
        *["--http", "[::1]:0", "--worker", "grpc://a:1?model=x%20y", "grpc://b:2", "--demo"],
        *["--stream.keepalive-s", "0.05", "--models.org/m:3.1.aliases", "yes", "123", "# no"],
        *["--models.no.context", "5", "--models.x.tokenizer", "/a: b/#c\n'd'", "--name", "007"],
    ]
    loaded = load(said, {"SMG_HTTP__CORS_ALLOWED_ORIGINS": "*"})
    page = render_settings(loaded.settings, loaded.origins)
    again = load(["--config", write_yaml(tmp_path, page)])
    assert again.settings == loaded.settings
    assert render_settings(again.settings, {}) == render_settings(loaded.settings, {})


def test_the_defaults_are_printed_without_origins_and_can_be_given_back(tmp_path: Path) -> None:
    page = render_settings(load().settings, {})
    assert page.count("#") == 1
    assert load(["--config", write_yaml(tmp_path, page)]).settings == load().settings


def test_what_was_said_is_printed_with_its_origin() -> None:
    loaded = load(["--port", "5"], {"SMG_LIMITS__N_MAX": "3"})
    page = render_settings(loaded.settings, loaded.origins)
    assert "\n  listen: 0.0.0.0:5  # flag --port\n" in page
    assert "\n  n_max: 3  # environment SMG_LIMITS__N_MAX\n" in page
    assert page.count("  # ") == 2


class _Locked(Section):
    """Something locked."""

    key: SecretStr = text(SecretStr("hunter2"), "A key.", most=64)


def test_a_knob_without_a_default_is_said_to_be_required() -> None:
    (match,) = (one for one in SCHEMA.knobs if one.dotted == "auth.certificates.NAME.match")
    assert match.default == "required"
    assert all("Undefined" not in one.default for one in SCHEMA.knobs)


def test_secrets_are_masked_when_printed() -> None:
    assert "hunter2" not in render_settings(_Locked(), {})
    loaded = load(["--telemetry.otlp-endpoint", "https://me:hunter2@collector:4318/v1"])
    page = render_settings(loaded.settings, loaded.origins)
    assert "hunter2" not in page
    assert "https://**********@collector:4318/v1" in page


def test_the_banner_says_what_runs_and_what_is_open() -> None:
    loaded = load(["--http", "127.0.0.1:5", "--metrics", ":0", "--worker", "grpc://a:1"])
    block = render_banner(startup_facts(loaded, version="1.2.3"))
    assert block.startswith("smg-node 1.2.3\n")
    assert "http://127.0.0.1:5\n" in block
    assert "any free port of 0.0.0.0\n" in block
    assert "grpc://a:1\n" in block
    assert "answers loopback only, until an admin key exists" in block
    assert ("machine code" if compiled() else "Python, which is slower") in block


def test_the_banner_says_that_rules_of_certificates_close_what_they_close(tmp_path: Path) -> None:
    file = tmp_path / "node.yaml"
    tls = "{certificate: a.crt, key: a.key, client: ask, client_authority: ca.crt}"
    file.write_text(
        f"http: {{tls: {tls}}}\nauth: {{certificates: {{all: {{match: '*', tenant: t}}}}}}"
    )
    rule = ", or a certificate that auth.certificates has a rule for"
    for data, says in (
        ("auto", f"needs a key{rule}"),
        ("closed", f"needs a key (auth.data){rule}"),
        ("open", "open to everyone who can reach it (auth.data)"),
    ):
        loaded = load(["--config", str(file), "--auth.data", data])
        facts = startup_facts(loaded, version="1")
        assert facts["data API"] == says
        assert facts["admin API"] == f"needs an operator's or an administrator's key{rule}"


def test_the_banner_says_that_issuers_close_what_they_close() -> None:
    words = ("issuer", "https://a.example"), ("audiences", "smg"), ("role-map", '{"*": "admin"}')
    flags = [word for name, value in words for word in (f"--auth.issuers.a.{name}", value)]
    facts = startup_facts(load(flags), version="1")
    assert facts["data API"] == "needs a key, or a token of auth.issuers"
    assert facts["admin API"].endswith("administrator's key, or a token of auth.issuers")


def test_the_banner_says_where_the_admin_api_is_apart_from_the_public_one() -> None:
    for where, says in (
        (
            "unix:/run/a.sock",
            "answers the user that the node runs as, and root, at unix:/run/a.sock",
        ),
        ("127.0.0.1:1", "at 127.0.0.1:1 only; answers loopback only, until an admin key exists"),
    ):
        facts = startup_facts(load(["--http.admin-listen", where]), version="1")
        assert facts["admin API"].startswith(says)


def test_the_banner_says_whether_there_is_a_mesh_and_what_to_do_to_have_one() -> None:
    assert "--mesh-key FILE" in startup_facts(load(), version="1")["mesh"]
    seeds = [f"h{n}" for n in range(12)]
    said = startup_facts(load(["--mesh-key", "k", "--join", *seeds]), version="1")["mesh"]
    assert said.startswith("0.0.0.0:7946, encrypted with k, cluster 'default', joins h0, h1, ")
    assert said.endswith("h7 and 4 more")
    plain = ["--insecure-mesh", "--mesh", "127.0.0.1:0", "--advertise", "10.0.0.9"]
    said = startup_facts(load(plain), version="1")["mesh"]
    assert said == (
        "any free port of 127.0.0.1, advertised as 10.0.0.9, in PLAIN TEXT (--insecure-mesh),"
        " cluster 'default', waits to be joined"
    )


def test_the_banner_of_a_large_or_empty_fleet_stays_short() -> None:
    urls = [f"grpc://h{n}:1" for n in range(100)]
    assert "and 92 more" in startup_facts(load(["--worker", *urls]), version="1")["workers"]
    assert "smg-admin workers add" in startup_facts(load(), version="1")["workers"]
    assert "simulated" in startup_facts(load(["--demo"]), version="1")["workers"]
