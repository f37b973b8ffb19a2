from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from smg_node.config.frozen_settings import plain_settings
from smg_node.config.output.effective_config import render_settings, shown_settings
from smg_node.config.settings import Settings
from smg_node.history.store.open_store import store_options, store_url
from smg_storage.options import StoreOptions


def settings(**storage: Any) -> Settings:
    return Settings(data_dir=Path("/data"), storage=storage)  # type: ignore[arg-type]  # as a file gives it


def test_history_is_in_a_file_of_the_data_directory_unless_said_otherwise() -> None:
    assert settings().storage.kind == "sqlite"
    assert store_url(settings()).path == "/data/history.db"
    assert store_url(settings(url="sqlite:///a/b.db")).path == "/data/a/b.db"
    assert store_url(settings(url="sqlite:////a/b.db")).path == "/a/b.db"
    assert store_url(settings(url="redis://h:1/2")).hosts == (("h", 1),)


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("memory:", "memory"),
        ("none:", "none"),
        ("postgresql://u:p@h/db", "postgresql"),
        ("rediss://h", "redis"),
        ("oracle://u@h/s", "oracle"),
    ],
)
def test_the_kind_of_a_store_is_known_without_loading_it(url: str, kind: str) -> None:
    assert plain_settings(settings(url=url)).storage.kind == kind


@pytest.mark.parametrize("url", ["", "mysql://h/db", "sqlite:///", "postgresql://secret@h"])
def test_a_url_that_names_no_store_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ValidationError) as caught:
        settings(url=url)
    (error,) = caught.value.errors()
    assert error["loc"] == ("storage", "url")
    assert "secret" not in error["msg"]


def test_passwords_are_never_shown() -> None:
    told = settings(url="postgresql://me:hidden@h/db?sslpassword=hidden&application_name=x")
    shown = render_settings(told, {}) + str(shown_settings(plain_settings(told)))
    assert "hidden" not in shown
    assert "application_name=x" in shown


def test_every_number_of_a_store_has_the_default_that_the_store_gives_it() -> None:
    from msgspec.structs import replace

    ours = store_options(plain_settings(settings()))
    assert ours == StoreOptions(application_name=f"smg-node/{Settings().name}")
    changed = store_options(
        settings(auto_migrate="on", pool={"size": 9}, memory={"responses_max": 3}, owner="chat")
    )
    assert changed != replace(ours, auto_migrate=True)
    assert (changed.auto_migrate, changed.pool_size) == (True, 9)
    assert (changed.memory.responses_max, changed.schema.owner) == (3, "chat")


def test_tables_may_have_names_of_their_own() -> None:
    told = settings(
        tables={
            "responses": {
                "table": "answers",
                "columns": ["id=answer_id", "tenant=org"],
                "extra_columns": ["team=VARCHAR(32):none", "cost=BIGINT"],
                "skip_columns": ["safety_identifier"],
            }
        }
    )
    names = store_options(plain_settings(told)).schema.tables["responses"]
    assert names.table == "answers"
    assert names.columns == {"id": "answer_id", "tenant": "org"}
    assert names.extra_columns == {
        "team": {"type": "VARCHAR(32)", "default": "none"},
        "cost": {"type": "BIGINT", "default": ""},
    }
    assert names.skip_columns == ("safety_identifier",)


@pytest.mark.parametrize("pairs", [["id"], ["=x"], ["i d=x"], ["1=x"], ["id=a", "id=b"], ["id="]])
def test_a_column_without_a_name_is_refused(pairs: list[str]) -> None:
    with pytest.raises(ValidationError):
        settings(tables={"responses": {"columns": pairs}})


def test_hooks_are_shown_no_header_with_a_secret() -> None:
    assert settings(context_headers=["X-Team"]).storage.context_headers == ("x-team",)
    for name in ("Authorization", "cookie", "x-api-key", "no header", ""):
        with pytest.raises(ValidationError):
            settings(context_headers=[name])


def test_hooks_are_those_that_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "smg_node.config.sections.storage.installed", lambda group: (("audit", "x:y"),)
    )
    assert settings(hooks=["audit:open"]).storage.hooks == ("audit:open",)
    for hooks in (["other"], ["audit:"], ["audit:maybe"], ["audit"] * 5):
        with pytest.raises(ValidationError):
            settings(hooks=hooks)


def test_a_schema_has_a_name_or_none() -> None:
    assert settings(owner="chat_1").storage.owner == "chat_1"
    for name in ("a b", "1a", 'x"'):
        with pytest.raises(ValidationError):
            settings(owner=name)
