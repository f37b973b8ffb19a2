"""Secret values: knobs whose value is in a file, put in place of the file's name, and warnings where others may read one."""

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from smg_node.config.masking import masked
from smg_node.config.schema.knob import LIST_KINDS, Knob, KnobPath, Schema
from smg_node.config.schema.problems import Problem
from smg_node.config.schema.secret_file import SecretFile, read_secret_file
from smg_node.config.schema.value_parser import Entry

_FLAG: Final = "flag "


@dataclass(frozen=True, slots=True)
class Secrets:
    """Files that values were read from, by knob, and what an operator should know."""

    files: dict[KnobPath, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def take_secrets(
    said: MutableMapping[KnobPath, Entry], schema: Schema, problems: list[Problem]
) -> Secrets:
    """Put the content of each file in `said` under the knob that it is for; adds to `problems` what will not do."""
    found = Secrets()
    for path, entry in [*said.items()]:
        knob = schema.at(path)
        if not isinstance(knob, Knob):
            continue
        if knob.content_of:
            del said[path]
            _take(said, schema, path, entry, problems, found)
        elif entry.place.startswith(_FLAG) and _is_secret(knob, entry.raw):
            found.warnings.append(
                f"{knob.dotted}: others on this machine can read it in the command line;"
                f" {knob.long_flag}-file takes it from a file"
            )
    return found


def _take(
    said: MutableMapping[KnobPath, Entry],
    schema: Schema,
    path: KnobPath,
    entry: Entry,
    problems: list[Problem],
    found: Secrets,
) -> None:
    target = (*path[:-1], path[-1].removesuffix("_file"))
    knob = schema.at(target)
    assert isinstance(knob, Knob)
    dotted = ".".join(path)
    if target in said:
        message = f"{'.'.join(target)} is given as well ({said[target].place}); give one of them"
        problems.append(Problem(dotted, message, entry.place))
        return
    if not isinstance(entry.raw, str) or not entry.raw or "\0" in entry.raw:
        problems.append(Problem(dotted, "it must be a path", entry.place))
        return
    try:
        content = read_secret_file(Path(entry.raw))
        raw = _value(knob, content)
    except ValueError as error:
        problems.append(Problem(dotted, str(error), entry.place))
        return
    said[target] = Entry(target, raw, f"{entry.place}, {entry.raw}")
    found.files[target] = entry.raw
    if content.warning:
        found.warnings.append(f"{dotted}: {content.warning}")


def _value(knob: Knob, content: SecretFile) -> object:
    if knob.kind not in LIST_KINDS:
        return content.text
    if not (lines := content.lines()):
        raise ValueError("the file has no line that says anything")
    return lines


def _is_secret(knob: Knob, raw: object) -> bool:
    """Whether a value is one that nobody should read: any of a secret knob, and a URL with a password."""
    return knob.secret or (isinstance(raw, str) and knob.kind == "text" and masked(raw) != raw)
