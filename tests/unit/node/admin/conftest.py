import pytest

from smg_node.admin.cli import main
from support.http.admin_api import RunAdmin


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> RunAdmin:
    """Run `smg-admin` in this process; gives its exit code, what it printed and what it complained."""
    monkeypatch.delenv("SMG_ADMIN_URL", raising=False)
    for name in ("SMG_ADMIN_KEY", "SMG_KEY", "SMG_KEY_FILE", "SMG_TOKEN_COMMAND"):
        monkeypatch.delenv(name, raising=False)

    def run_main(*argv: str) -> tuple[int, str, str]:
        code = main(argv)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run_main
