"""Plain values of YAML and JSON: words, names of fields and secrets, each checked and told by its path. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from smg_node.config.schema.suggestions import did_you_mean
from smg_node.core.errors import SmgError, invalid
from smg_node.providers.secret import SECRET_MAX_CHARACTERS, Secret

WORD_MAX_CHARACTERS: Final = 2_048
_SHOWN: Final = 80
"""So many characters of what an operator wrote are repeated."""


def wrong(path: str, why: str) -> SmgError:
    """Return the error for an operator who is wrong at `path`."""
    return invalid(f"{path}: {why}", path, "invalid_provider")


def shown(said: object) -> str:
    """Return the beginning of a value, quoted."""
    return repr(str(said)[:_SHOWN])


def check_names(said: Mapping[Any, Any], known: Sequence[str], path: str) -> None:
    """Raise INVALID_REQUEST for a key that is none of `known`, with the one that is nearest."""
    for key in said:
        if not isinstance(key, str) or key not in known:
            name = str(key)[:_SHOWN]
            raise wrong(f"{path}.{name}", f"is unknown{did_you_mean(name, known)}")


def chosen(said: object, known: Sequence[str], path: str, *, whose: str = "known") -> str:
    """Return `said` if it is one of `known`; INVALID_REQUEST that lists them otherwise."""
    if isinstance(said, str) and said in known:
        return said
    why = "is missing" if said is None else f"{shown(said)} is unknown"
    suggestion = did_you_mean(str(said), known) if said is not None else ""
    raise wrong(path, f"{why}{suggestion}; {whose}: {', '.join(known)}")


def word(said: object, path: str) -> str:
    """Return a text of printable characters; INVALID_REQUEST otherwise."""
    if not isinstance(said, str) or not said or len(said) > WORD_MAX_CHARACTERS:
        raise wrong(path, f"must be a text of 1 to {WORD_MAX_CHARACTERS:,} characters")
    if not said.isprintable():
        raise wrong(path, "holds a character that cannot be printed")
    return said


def words(said: object, path: str, *, most: int) -> tuple[str, ...]:
    """Return a list of texts; INVALID_REQUEST otherwise."""
    if not isinstance(said, list | tuple):
        raise wrong(path, "must be a list")
    if len(said) > most:
        raise wrong(path, f"has more than {most} entries")
    return tuple(word(one, f"{path}[{at}]") for at, one in enumerate(said))


def entries(said: object, path: str, example: str) -> Mapping[Any, Any]:
    """Return an object; INVALID_REQUEST with an example otherwise."""
    if not isinstance(said, Mapping):
        raise wrong(path, f"must be an object, as {example}")
    return said


def secret(said: object, path: str) -> Secret:
    """Return a secret; INVALID_REQUEST, which never repeats it, otherwise."""
    if not isinstance(said, str) or not said.strip() or len(said) > SECRET_MAX_CHARACTERS:
        raise wrong(path, "must be a text: file:/path, env:NAME, or the value itself")
    found = Secret(said.strip())
    if found.spelled.startswith("file:") and not found.spelled.startswith("file:/"):
        raise wrong(path, "must name its file by a whole path, as file:/run/secrets/key")
    if found.spelled in ("env:", "file:/"):
        raise wrong(path, "names nothing")
    return found
