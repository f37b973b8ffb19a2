"""The command `smg-chaos vendor`: its options, its help, and the process."""

from typing import Any

import pytest
from typer.testing import CliRunner

from smg_chaos.cli import app
from smg_chaos.vendor.faults.fault import FAULTS
from smg_chaos.vendor.hostings.hosting import HOSTINGS
from smg_chaos.vendor.hostings.quirks import QUIRKS, VENDORS
from smg_chaos.vendor.options import OPTIONS, default_of, settings_of
from smg_chaos.vendor.settings import KEYS, VendorSettings


def given(**changes: Any) -> dict[str, Any]:
    return {option.flag.replace("-", "_"): default_of(option) for option in OPTIONS} | changes


def test_without_options_it_is_what_the_settings_say() -> None:
    assert settings_of(given(), "openai", "") == VendorSettings()
    assert VendorSettings().keys == KEYS


def test_options_set_their_fields() -> None:
    made = settings_of(
        given(key=["a", "b"], model=["m"], rpm=5, strict=True, fault=["cut"]), "xai", "text"
    )
    assert made == VendorSettings(
        kind="xai",
        script="text",
        keys=("a", "b"),
        models=("m",),
        requests_per_minute=5,
        strict=True,
        faults=("cut",),
    )


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--kind", "opnai"], "did you mean 'openai'"),
        (["--quirk", "grok"], "did you mean 'groq'"),
        (["--fault", "cutt"], "did you mean 'cut'"),
        (["--price", "m=1"], "give MODEL="),
        (["--script", "/nowhere/at/all"], "No such file"),
    ],
)
def test_a_wrong_option_is_told_what_is_wrong(flags: list[str], words: str) -> None:
    done = CliRunner().invoke(app, ["vendor", *flags])
    assert done.exit_code == 2
    assert words in done.stderr


def test_the_help_teaches_kinds_quirks_faults_words_and_routes() -> None:
    told = CliRunner().invoke(app, ["vendor", "--help"], terminal_width=200).stdout
    for name in (*HOSTINGS, *QUIRKS, *VENDORS, *FAULTS, "rounds=N", "/_vendor/bill"):
        assert name in told, name
