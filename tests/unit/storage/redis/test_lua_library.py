import re
from hashlib import sha1
from importlib.resources import files
from typing import Final

import pytest

from smg_storage.redis.lua_library import Effect, Library

LIBRARY: Final = Library()
_CALLED: Final = re.compile(
    r"""(?:_ask|\.ask|_conversation|_response)\(\s*"(\w+)"|Ask\(\s*"(\w+)\"""", re.DOTALL
)


def python_text() -> str:
    folder = files("smg_storage.redis")
    return "\n".join(part.read_text() for part in folder.iterdir() if part.name.endswith(".py"))


def test_the_functions_are_called_by_their_own_digest() -> None:
    assert re.fullmatch(r"smg_[0-9a-f]{12}", LIBRARY.name)
    assert LIBRARY.functions.startswith(f"#!lua name={LIBRARY.name}\n")
    names = {LIBRARY.function(effect) for effect in Effect}
    assert len(names) == 3
    assert all(f"function_name='{name}'" in LIBRARY.functions for name in names)
    assert Library().functions == LIBRARY.functions


def test_only_what_writes_is_without_a_flag() -> None:
    assert "_read', callback=run, flags={'no-writes'}" in LIBRARY.functions
    assert "_write', callback=run, flags={}" in LIBRARY.functions
    assert "_free', callback=run, flags={'allow-oom'}" in LIBRARY.functions
    assert LIBRARY.script(Effect.READ, flags=True).startswith("#!lua flags=no-writes\n")
    assert LIBRARY.script(Effect.WRITE, flags=True).startswith("#!lua\n")


@pytest.mark.parametrize("effect", Effect)
@pytest.mark.parametrize("flags", [False, True])
def test_a_script_is_found_by_the_digest_of_its_text(effect: Effect, *, flags: bool) -> None:
    text = LIBRARY.script(effect, flags=flags)
    digest = sha1(text.encode(), usedforsecurity=False).hexdigest()
    assert LIBRARY.script_digest(effect, flags=flags) == digest
    assert text.startswith("#!") is flags


def test_every_function_is_called_and_every_call_has_its_function() -> None:
    made = set(re.findall(r"^function F\.(\w+)\(", LIBRARY.functions, re.MULTILINE))
    called = {one or other for one, other in _CALLED.findall(python_text())}
    assert len(made) >= 30
    assert called == made


def test_nothing_is_global_and_nothing_runs_while_it_is_loaded() -> None:
    outside = [
        line
        for line in LIBRARY.functions.splitlines()
        if line and not line[0].isspace() and not line.startswith("--")
    ]
    allowed = re.compile(r"local |function F\.|end$|\}$|#!lua |redis\.register_function")
    assert [line for line in outside if not allowed.match(line)] == []
    assert "math.random" not in LIBRARY.functions
    assert "'TIME'" not in LIBRARY.functions
