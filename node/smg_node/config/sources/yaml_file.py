"""YAML file source: settings from a file, each with the line it stands on.

The file is read as a graph of nodes, not as values: that keeps line numbers, shows keys that are given
twice (YAML libraries let the last one win in silence), and bounds what anchors can unfold to. Only the
safe subset is understood: no tags that name Python objects, no merge keys.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from smg_node.config.schema.knob import ANY_NAME, Group, KnobPath, Schema
from smg_node.config.schema.problems import ConfigurationError, Problem, shown
from smg_node.config.schema.value_parser import Entry

if TYPE_CHECKING:
    from yaml import Loader, MarkedYAMLError, Node

_FILE_MAX_BYTES: Final = 4_194_304  # a thousand models take 200 KiB
_NODES_MAX: Final = 100_000  # what anchors may unfold to
_DEPTH_MAX: Final = 16  # the tree of settings is 4 deep
_MAPPING: Final = "tag:yaml.org,2002:map"
_SEQUENCE: Final = "tag:yaml.org,2002:seq"


def read_file(path: Path, schema: Schema, *, named_by: str) -> tuple[list[Entry], list[Problem]]:
    """Return what the file sets, in its order, and what is wrong with it.

    Raises ConfigurationError where nothing can be read at all: no such file, not YAML. `named_by`
    is where the file was named.
    """
    # Imported here: a node without a file does not pay for it.
    import yaml

    source = _source(path, named_by)
    loader = yaml.SafeLoader("")
    try:
        loader = yaml.SafeLoader(source)
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        raise ConfigurationError([_syntax(path, error, source)]) from None
    except yaml.YAMLError as error:
        words = " ".join(str(error).split())
        raise ConfigurationError([Problem(str(path), f"this is not YAML: {words}")]) from None
    except RecursionError:
        raise ConfigurationError([Problem(str(path), "it is nested too deeply")]) from None
    reader = _Reader(path, schema, loader)
    if node is not None:
        reader.read(node, ())
    return reader.entries, reader.problems


def _source(path: Path, named_by: str) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(_FILE_MAX_BYTES + 1)
        if len(raw) > _FILE_MAX_BYTES:
            reason = f"the file is larger than {_FILE_MAX_BYTES} bytes"
        else:
            return raw.decode("utf-8-sig")
    except OSError as error:
        reason = f"cannot read the file: {(error.strerror or str(error)).lower()}"
    except UnicodeDecodeError as error:
        reason = f"the file is not UTF-8 text (byte {error.start})"
    raise ConfigurationError([Problem(str(path), reason, named_by)])


def _syntax(path: Path, error: "MarkedYAMLError", source: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark is not None else 1
    text = source.splitlines()[line - 1] if line <= len(source.splitlines()) else ""
    if "\t" in text[: len(text) - len(text.lstrip())]:
        reason = "a tab cannot indent YAML; use blanks"
    elif text.partition(":")[2].strip().startswith("["):
        reason = f"this is not YAML: {error.problem}; an address with brackets needs quotes"
    elif "alias" in str(error.problem):
        # The library repeats what follows the star, which may be half a password.
        reason = "this is not YAML: an alias of nothing; text that begins with * needs quotes"
    else:
        reason = f"this is not YAML: {error.problem}"
    return Problem("", reason, f"file {path}, line {line}")


class _Reader:
    """Walks the nodes of one file along the schema."""

    def __init__(self, path: Path, schema: Schema, loader: "Loader | Any") -> None:
        self.entries: list[Entry] = []
        self.problems: list[Problem] = []
        self._path = path
        self._schema = schema
        self._loader = loader
        self._nodes_left = _NODES_MAX

    def read(self, node: "Node", path: KnobPath) -> None:
        """Take `node` as the group at `path`."""
        if _is_null(node):
            # A section whose every line is commented out.
            return
        if node.tag != _MAPPING or not isinstance(node.value, list):
            self._refuse(node, path, "it must be a section (indented `key: value` lines)")
            return
        lines: dict[str, int] = {}
        for key, value in node.value:
            name = self._key(key, path, lines)
            if name is not None:
                self._read_key(key, value, (*path, name))

    def _key(self, key: "Node", path: KnobPath, lines: dict[str, int]) -> str | None:
        """The text of a key, or None where it is unusable or there already."""
        if key.tag == "tag:yaml.org,2002:merge":
            self._refuse(key, (*path, "<<"), "merge keys are not understood; write the keys out")
            return None
        if not isinstance(key.value, str):
            self._refuse(key, path, "a key must be one word")
            return None
        name: str = key.value
        if name in lines:
            where = (*path, name)
            self._refuse(key, where, f"it is given twice, the first time in line {lines[name]}")
            return None
        lines[name] = key.start_mark.line + 1
        return name

    def _read_key(self, key: "Node", value: "Node", path: KnobPath) -> None:
        place = self._schema.at(path)
        if place is None:
            self._refuse(key, path, self._unknown(path))
        elif isinstance(place, Group):
            if ANY_NAME in place.path:
                # `models: {my-model: }` says that there is one, with nothing to say about it.
                self.entries.append(Entry(path, {}, self._place(key)))
            self.read(value, path)
        else:
            try:
                self.entries.append(Entry(path, self._plain(value, 0), self._place(key)))
            except ValueError as error:
                why = "YAML takes it for no text; put quotes around it" if place.secret else error
                self._refuse(value, path, str(why))

    def _unknown(self, path: KnobPath) -> str:
        *_, leaf = path
        nested = (*path[:-1], *leaf.split("."))
        if "." in leaf and self._schema.at(nested) is not None:
            return "dots do not nest in YAML; write one level a line, indented"
        near = self._schema.suggest(path)
        return f"there is no such knob{f'; did you mean {near!r}?' if near else ''}"

    def _plain(self, node: "Node", depth: int) -> object:
        """The value of a node; ValueError where it is no plain one."""
        self._nodes_left -= 1
        if self._nodes_left < 0 or depth > _DEPTH_MAX:
            raise ValueError("it is nested too deeply or unfolds to too much")
        if isinstance(node.value, list):
            if node.tag not in (_SEQUENCE, _MAPPING):
                raise ValueError(f"the tag {shown(node.tag)} is not understood")
            if node.tag == _MAPPING:
                return self._names(node.value, depth)
            return [self._plain(entry, depth + 1) for entry in node.value]
        try:
            value: object = self._loader.construct_object(node)
        except Exception:
            # The library's own: an unknown tag is a YAMLError, `2024-99-99` a ValueError, `!!int x` a
            # KeyError or IndexError. All mean that this text is not what its tag says.
            raise ValueError(
                f"{shown(node.value)} is not what YAML takes it for; put quotes around it"
            ) from None
        return value

    def _names(self, pairs: "Sequence[tuple[Node, Node]]", depth: int) -> dict[str, object]:
        """The names of a mapping, as they are written, with their values."""
        found: dict[str, object] = {}
        for key, value in pairs:
            if not isinstance(key.value, str) or key.tag == "tag:yaml.org,2002:merge":
                raise ValueError("a key must be one word")
            if key.value in found:
                raise ValueError(f"{shown(key.value)} is given twice")
            found[key.value] = self._plain(value, depth + 1)
        return found

    def _place(self, node: "Node") -> str:
        return f"file {self._path}, line {node.start_mark.line + 1}"

    def _refuse(self, node: "Node", path: KnobPath, message: str) -> None:
        self.problems.append(Problem(".".join(path), message, self._place(node)))


def _is_null(node: "Node") -> bool:
    return bool(node.tag == "tag:yaml.org,2002:null")
