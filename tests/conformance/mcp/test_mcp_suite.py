"""The official conformance suite of the Model Context Protocol judges our client, in both eras."""

from pathlib import Path

import pytest

from support.mcp.real_servers import conformance

SCENARIOS = [
    ("2026-07-28", "tools_call"),
    ("2026-07-28", "request-metadata"),
    ("2026-07-28", "sep-2322-client-request-state"),
    ("2026-07-28", "http-standard-headers"),
    ("2026-07-28", "http-custom-headers"),
    ("2026-07-28", "http-invalid-tool-headers"),
    ("2026-07-28", "json-schema-ref-no-deref"),
    ("2026-07-28", "json-schema-2020-12-preservation"),
    ("2025-11-25", "initialize"),
    ("2025-11-25", "tools_call"),
    ("2025-11-25", "sse-retry"),
    ("2025-11-25", "json-schema-2020-12-preservation"),
]
BASELINE = Path(__file__).parent / "expected_failures.yml"


@pytest.mark.conformance
@pytest.mark.parametrize(("revision", "scenario"), SCENARIOS, ids=lambda value: value)
def test_a_scenario_passes(revision: str, scenario: str, tmp_path: Path) -> None:
    judged = conformance(tmp_path, "--scenario", scenario, "--spec-version", revision)
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert "OVERALL: PASSED" in judged.stdout + judged.stderr


@pytest.mark.conformance
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_a_token_of_client_credentials_lets_us_in(revision: str, tmp_path: Path) -> None:
    scenario = "auth/client-credentials-basic"
    # It belongs to an extension, which has no revision of its own.
    words = ("--scenario", scenario, "--spec-version", revision, "--force")
    judged = conformance(tmp_path, *words)
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert "OVERALL: PASSED" in judged.stdout + judged.stderr


@pytest.mark.long
@pytest.mark.conformance
def test_all_that_the_newest_revision_requires_passes_but_oauth(tmp_path: Path) -> None:
    words = ("--requirements", "2026-07-28", "--expected-failures", str(BASELINE))
    judged = conformance(tmp_path, *words)
    assert judged.returncode == 0, judged.stdout + judged.stderr
