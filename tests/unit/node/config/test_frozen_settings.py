import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel, SecretStr

from smg_node.config.frozen_settings import PlainSection, plain_settings
from smg_node.config.output.effective_config import render_settings, shown_settings
from smg_node.config.schema.declaration import Section, number, text
from smg_node.config.settings import Settings
from support.tools.configuration import load

FLAGS = ["--name", "n1", "--http", "127.0.0.1:5", "--models.m.context", "8192", "--demo"]


class Timers(Section):
    """Timers."""

    beat_s: float = number(2, "A beat.", low=1, high=9, why="so")
    word: SecretStr = text(SecretStr("hidden"), "A word.", most=9)

    @property
    def beat_ms(self) -> int:
        """The beat in milliseconds."""
        return round(self.beat_s * 1000)


def sections(model: type[BaseModel]) -> list[type[BaseModel]]:
    found = [model]
    for field in model.model_fields.values():
        kinds = [field.annotation, *getattr(field.annotation, "__args__", ())]
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                found += sections(kind)
    return found


def test_a_copy_reads_like_the_settings_it_was_made_of() -> None:
    settings = load(FLAGS).settings
    plain = plain_settings(settings)
    assert isinstance(plain, PlainSection)
    assert plain.name == "n1"
    assert plain.demo is True
    assert plain.http.listen == settings.http.listen
    assert plain.models["m"].context == 8192
    assert plain.data_dir == settings.data_dir
    assert list(dict(plain)) == list(Settings.model_fields)
    assert dict(plain.limits) == dict(settings.limits)


def test_a_copy_is_shown_and_printed_like_the_settings_it_was_made_of() -> None:
    loaded = load(FLAGS)
    plain = plain_settings(loaded.settings)
    assert shown_settings(plain) == shown_settings(loaded.settings)
    page = render_settings(loaded.settings, loaded.origins)
    assert render_settings(plain, loaded.origins) == page


def test_what_a_section_derives_comes_along_and_is_no_knob() -> None:
    settings = Settings.model_construct(http=Timers())
    plain = plain_settings(settings)
    assert vars(plain.http)["beat_ms"] == 2000
    assert list(dict(plain.http)) == ["beat_s", "word"]
    assert "hidden" not in str(shown_settings(plain))


def test_a_copy_is_frozen() -> None:
    plain = plain_settings(load().settings)
    with pytest.raises(AttributeError, match="frozen: name"):
        plain.__setattr__("name", "other")
    with pytest.raises(AttributeError, match="frozen: policy"):
        delattr(plain.routing, "policy")
    with pytest.raises(AttributeError):
        getattr(plain.routing, "no_such_knob")  # noqa: B009 - mypy would not let it be written out


def test_a_copy_travels_without_the_libraries_that_made_it() -> None:
    plain = plain_settings(load(FLAGS).settings)
    sent = pickle.dumps(plain)
    assert pickle.loads(sent) == plain
    code = (
        "import pickle, sys\n"
        "settings = pickle.load(sys.stdin.buffer)\n"
        "print(settings.name, settings.http.listen, [n for n in sys.modules if 'pydantic' in n])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=sent, capture_output=True, timeout=60, check=True
    )
    assert done.stdout.decode().split() == ["n1", "127.0.0.1:5", "[]"]


@pytest.mark.parametrize("section", sections(Settings), ids=lambda section: section.__name__)
def test_sections_hold_knobs_and_properties_because_methods_stay_behind(
    section: type[BaseModel],
) -> None:
    ours = [kind for kind in section.__mro__ if not kind.__module__.startswith("pydantic")]
    methods = [
        name
        for kind in ours
        for name, member in vars(kind).items()
        if inspect.isfunction(member) and not name.startswith("_")
    ]
    assert methods == []


def test_every_section_is_looked_at() -> None:
    folder = Path(inspect.getfile(Settings)).parent / "sections"
    modules = {section.__module__.rpartition(".")[2] for section in sections(Settings)}
    assert {path.stem for path in folder.glob("[a-z]*.py")} <= modules
