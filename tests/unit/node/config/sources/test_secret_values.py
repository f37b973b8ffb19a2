"""Values of knobs in files of their own: taken as they are, refused by name, and shown nowhere."""

import pickle
import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from smg_node.config.frozen_settings import SecretText, plain_settings
from smg_node.config.masking import masked
from smg_node.config.output.effective_config import render_settings, shown_settings
from smg_node.config.schema.secret_file import BYTES_MAX, read_secret_file
from support.tools.configuration import SCHEMA, load, refusal, write_yaml

PLANTED = "Planted0123456789Secret0123456789"
URL = f"postgresql://smg:{PLANTED}@db:5432/history"


def secret(folder: Path, text: str, mode: int = 0o600) -> str:
    file = folder / "secret"
    file.write_bytes(text.encode())
    file.chmod(mode)
    return str(file)


SECRETS = [knob for knob in SCHEMA.knobs if knob.secret]
TWINS = [knob for knob in SCHEMA.knobs if knob.content_of]


def test_every_secret_knob_has_a_twin_and_so_have_urls_with_passwords() -> None:
    twins = {".".join(knob.content_of): knob.dotted for knob in TWINS}
    assert twins == {
        "auth.api_key": "auth.api_key_file",
        "auth.tenant_api_keys": "auth.tenant_api_keys_file",
        "auth.control_plane_api_keys": "auth.control_plane_api_keys_file",
        "workers.api_key": "workers.api_key_file",
        "mcp.proxy": "mcp.proxy_file",
        "storage.url": "storage.url_file",
        "telemetry.otlp_endpoint": "telemetry.otlp_endpoint_file",
    }
    assert {knob.dotted for knob in SECRETS} <= twins.keys()


@pytest.mark.parametrize("way", ["flag", "environment", "file"])
def test_a_value_in_a_file_is_the_knobs_wherever_the_file_is_named(
    tmp_path: Path, way: str
) -> None:
    file = secret(tmp_path, f"{URL}\n")
    if way == "flag":
        loaded = load(["--storage.url-file", file])
    elif way == "environment":
        loaded = load([], {"SMG_STORAGE__URL_FILE": file})
    else:
        loaded = load(["--config", write_yaml(tmp_path, f"storage:\n  url_file: {file}\n")])
    assert loaded.settings.storage.url == URL
    assert loaded.warnings == ()


@pytest.mark.parametrize(
    ("content", "value"),
    [("k1", "k1"), ("k1\n", "k1"), ("k1\r\n", "k1"), ("k1\n\n", "k1\n"), ("k1\r", "k1\r")],
)
def test_exactly_one_newline_at_the_end_is_none_of_the_secret(
    tmp_path: Path, content: str, value: str
) -> None:
    assert read_secret_file(Path(secret(tmp_path, content))).text == value


def test_a_list_is_one_a_line(tmp_path: Path) -> None:
    file = secret(tmp_path, "# ours\n\n a:k1-0123456789abcdef \r\nb:k2-0123456789abcdef")
    keys = load(["--auth.tenant-api-keys-file", file]).settings.auth.tenant_api_keys
    assert [key.get_secret_value() for key in keys] == [
        "a:k1-0123456789abcdef",
        "b:k2-0123456789abcdef",
    ]
    empty = secret(tmp_path, "# nothing\n")
    assert "has no line that says anything" in refusal(["--auth.tenant-api-keys-file", empty])[0]


@pytest.mark.parametrize("knob", ["storage.url", "workers.api_key", "auth.api_key", "mcp.proxy"])
def test_a_file_that_will_not_do_is_refused_by_the_knobs_name(tmp_path: Path, knob: str) -> None:
    flag = "--" + knob.replace("_", "-") + "-file"
    missing = refusal([flag, str(tmp_path / "none")])
    assert missing[0].startswith(f"{knob}_file: cannot read ")
    assert "no such file" in missing[0]
    folder = refusal([flag, str(tmp_path)])
    assert "is a directory" in folder[0]
    for content, why in (
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"x" * (BYTES_MAX + 1), "is larger than 65536 bytes"),
        (PLANTED.encode() + b"\xff", "is not UTF-8 text (byte 33)"),
    ):
        file = tmp_path / "bad"
        file.write_bytes(content)
        (line,) = refusal([flag, str(file)])
        assert line.startswith(f"{knob}_file: ")
        assert why in line
        assert PLANTED not in line
    assert (
        "it must be a path" in refusal([], {f"SMG_{knob.replace('.', '__').upper()}_FILE": ""})[0]
    )


def test_value_and_file_both_are_an_error_that_names_both(tmp_path: Path) -> None:
    file = secret(tmp_path, URL)
    (line,) = refusal(["--store", URL], {"SMG_STORAGE__URL_FILE": file})
    assert line == (
        "storage.url_file: storage.url is given as well (flag --store); give one of them"
        " (environment SMG_STORAGE__URL_FILE)"
    )


def test_what_a_check_has_against_a_value_of_a_file_names_the_file_and_not_the_value(
    tmp_path: Path,
) -> None:
    file = secret(tmp_path, f"{PLANTED}\n")
    (line,) = refusal(["--storage.url-file", file])
    assert line.startswith("storage.url: ")
    assert file in line
    assert PLANTED not in line
    file = secret(tmp_path, f"{PLANTED} with blanks")
    (line,) = refusal(["--workers.api-key-file", file])
    assert "printable ASCII" in line
    assert PLANTED not in line


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_others_may_use_is_one_warning_by_the_knobs_name(
    tmp_path: Path, mode: int
) -> None:
    file = secret(tmp_path, URL, mode)
    (warning,) = load(["--storage.url-file", file]).warnings
    assert warning == (
        f"storage.url_file: others on this machine may use {file} (mode {mode:04o}); chmod 600"
    )


def test_a_secret_in_the_command_line_is_a_warning_and_elsewhere_none() -> None:
    for flags, knob in (
        (["--api-key", PLANTED], "auth.api_key"),
        (["--tenant-api-key", f"a:{PLANTED}"], "auth.tenant_api_keys"),
        (["--store", URL], "storage.url"),
        (["--mcp.proxy", "http://u:p@proxy:3128"], "mcp.proxy"),
    ):
        (warning,) = load(flags).warnings
        assert warning.startswith(f"{knob}: others on this machine can read it")
        assert f"--{knob.replace('_', '-')}-file" in warning
    assert load(["--store", "sqlite:///a.db"]).warnings == ()
    assert load([], {"SMG_AUTH__API_KEY": PLANTED}).warnings == ()


def test_no_secret_is_shown_by_any_page_of_the_settings(tmp_path: Path) -> None:
    plain = {
        "--api-key": PLANTED,
        "--tenant-api-key": f"acme:{PLANTED}1",
        "--control-plane-api-keys": f"one:One:admin:{PLANTED}2",
        "--workers.api-key": PLANTED,
        "--mcp.proxy": f"http://user:{PLANTED}@proxy:3128",
        "--store": URL,
        "--telemetry.otlp-endpoint": f"http://user:{PLANTED}@collector:4318",
    }
    in_files = {}
    for number, (flag, value) in enumerate(plain.items()):
        file = tmp_path / f"file-{number}"
        file.write_text(value)
        knob = next(knob for knob in SCHEMA.knobs if flag in knob.flags)
        in_files[f"{knob.long_flag}-file"] = str(file)
    assert len(in_files) == len(TWINS)
    for given_flags in (plain, in_files):
        loaded = load([word for pair in given_flags.items() for word in pair])
        frozen = plain_settings(loaded.settings)
        for page in (
            render_settings(loaded.settings, loaded.origins, loaded.files),
            render_settings(frozen, loaded.origins, loaded.files),
            str(shown_settings(frozen)),
            repr(loaded),
            repr(frozen),
            repr(dict(frozen.auth)),
            "\n".join(loaded.warnings),
        ):
            assert PLANTED not in page


def test_the_printed_configuration_names_the_file_and_gives_the_same_settings(
    tmp_path: Path,
) -> None:
    file = secret(tmp_path, URL)
    loaded = load(["--storage.url-file", file])
    page = render_settings(loaded.settings, loaded.origins, loaded.files)
    storage = yaml.safe_load(page)["storage"]
    assert storage["url_file"] == file
    assert "url" not in storage
    assert "# flag --storage.url-file" in page
    again = tmp_path / "again.yaml"
    again.write_text(page)
    assert load(["--config", str(again)]).settings == loaded.settings


def test_a_secret_that_is_no_text_is_refused_without_it(tmp_path: Path) -> None:
    for value in ("4711471147114711", "[4711471147114711]", "{a: 4711471147114711}", "2024-99-99"):
        text = f"auth:\n  api_key: {value}\n  tenant_api_keys: {value}\n"
        lines = refusal(["--config", write_yaml(tmp_path, text)])
        assert len(lines) >= 1
        assert not any("4711" in line or "2024" in line for line in lines)
    lines = refusal([], {"SMG_AUTH__TENANT_API_KEYS": f"[{PLANTED}"})
    assert not any(PLANTED in line for line in lines)
    lines = refusal(["--config", write_yaml(tmp_path, f"auth:\n  api_key: *{PLANTED}\n")])
    assert not any(PLANTED in line for line in lines)
    lines = refusal(["--api-key", PLANTED * 40])
    assert not any(PLANTED in line for line in lines)


def test_a_frozen_secret_travels_between_processes_and_shows_nothing() -> None:
    frozen = plain_settings(load(["--api-key", PLANTED]).settings)
    found = pickle.loads(pickle.dumps(frozen))
    assert found.auth.api_key == SecretText(PLANTED)
    assert found.auth.api_key.get_secret_value() == PLANTED
    assert not isinstance(found.auth.api_key, SecretStr)
    assert PLANTED not in f"{found.auth.api_key!r} {found.auth.api_key}"
    assert hash(found.auth.api_key) == hash(SecretText(PLANTED))


@given(st.binary(max_size=200))
def test_any_file_is_a_text_or_refused_without_it(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "s"
        file.write_bytes(content)
        if content in (b"", b"\n", b"\r\n"):
            with pytest.raises(ValueError, match="is empty"):
                read_secret_file(file)
        elif not _is_text(content):
            with pytest.raises(ValueError, match="is not UTF-8"):
                read_secret_file(file)
        else:
            found = read_secret_file(file)
            assert found.text.encode() in (content, content[:-1], content[:-2])
            assert repr(found) == "SecretFile(…)"


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:pa@ss@host/db", "postgresql://**********@host/db"),
        ("redis://:p@host:6379/0", "redis://**********@host:6379/0"),
        ("oracle://h/s?wallet_password=x&a=b", "oracle://h/s?wallet_password=**********&a=b"),
        ("sqlite:///history.db", "sqlite:///history.db"),
    ],
)
def test_urls_are_shown_without_their_passwords(url: str, shown: str) -> None:
    assert masked(url) == shown
