"""Hostile templates end, soon, in an error that says why."""

import subprocess
import sys
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from smg_node.prompts.jinja.chat_template import TemplateError
from smg_node.prompts.jinja.sandbox import Today
from support.models.hostile_templates import ENDLESS, FORBIDDEN, HUGE, SOURCES
from support.models.prompt_corpus import NOW, compiled

_MESSAGES = [{"role": "user", "content": "x"}]
# Generous: what is meant is "not for ever", on a machine that does nine other things.
_SOON_S = 20


def _end_of(text: str, **limits: Any) -> TemplateError:
    started = monotonic()
    with pytest.raises(TemplateError) as failure:
        compiled(text, **limits).render({"messages": _MESSAGES, "strftime_now": Today(NOW)})
    assert monotonic() - started < _SOON_S
    assert failure.value.message.encode()
    assert len(failure.value.message) < 1000
    return failure.value


@pytest.mark.parametrize("name", ENDLESS)
def test_a_template_that_never_ends_is_stopped(name: str) -> None:
    failure = _end_of(ENDLESS[name], output_max_bytes=4 << 20, render_max_s=0.2)
    assert failure.kind in ("work", "time", "depth") or "recursion depth" in failure.message


@pytest.mark.parametrize("name", HUGE)
def test_a_template_that_makes_something_enormous_is_stopped(name: str) -> None:
    # Time enough for a machine that does other things: size is what has to stop it here.
    failure = _end_of(HUGE[name], output_max_bytes=4 << 20, render_max_s=_SOON_S)
    assert failure.kind in ("work", "output", "depth", "broken")


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_a_template_must_not_have_it_does_not_get(name: str) -> None:
    assert _end_of(FORBIDDEN[name]).kind in ("broken", "compile")


@pytest.mark.parametrize("name", SOURCES)
def test_a_hostile_source_is_refused_soon(name: str) -> None:
    assert _end_of(SOURCES[name]).kind in ("compile", "output")


def test_a_template_cannot_change_what_it_is_given() -> None:
    messages = [{"role": "user", "content": "x"}]
    for text in FORBIDDEN.values():
        try:
            compiled(text).render({"messages": messages})
        except TemplateError:
            continue
    assert messages == [{"role": "user", "content": "x"}]


_IN_LITTLE_MEMORY = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from support.models.hostile_templates import HUGE
from support.models.prompt_corpus import compiled
from smg_node.prompts.jinja.chat_template import TemplateError
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
for name, text in HUGE.items():
    try:
        compiled(text, output_max_bytes=4 << 20).render({"messages": []})
    except TemplateError as error:
        if isinstance(error.__cause__, MemoryError):
            print(name)
"""


def test_none_of_the_enormous_templates_takes_much_memory() -> None:
    """A gigabyte of address space, interpreter included, is enough for all of them in turn."""
    tests = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", _IN_LITTLE_MEMORY, str(tests)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
