"""Key import, `smg-admin keys import`: makes keys of other gateways good here; only their digests are sent."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from smg_node.admin.client import AdminClient, AdminError
from smg_node.admin.options import options_of
from smg_node.admin.views.output import print_json, tell
from smg_node.admin.views.value_text import format_time

if TYPE_CHECKING:
    from smg_node.admin.key_files.key_row import KeyFile, KeyRow

_IMPORT: Final = ("v1", "cluster", "keys", "import")
_BATCH: Final = 200
_BATCH_TIMEOUT_S: Final = 60.0
_PROGRESS_ROWS: Final = 2_000
_SAID_MAX: Final = 20
_OF_TEAMS: Final = frozenset({"all-team-models", "no-default-models"})
"""Names of LiteLLM that stand for other lists."""
_FORMATS: Final = ("smg", "litellm", "csv")


def import_keys(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="`-` is the standard input.", show_default=False)
    ],
    origin: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="smg|litellm|csv",
            help="smg: TENANT:KEY and ID:NAME:ROLE:KEY, one a line. litellm: its table of keys as CSV, with token,"
            " key_alias, team_id, expires, models. csv: tenant, role, name, key or sha256, expires.",
        ),
    ],
    tenant: Annotated[
        str, typer.Option(metavar="NAME", help="Whose those are that name no tenant or team.")
    ] = "",
    ignore_models: Annotated[
        bool,
        typer.Option(
            "--ignore-models", help="Make keys that were for some models only good for every model."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would come of it.")
    ] = False,
) -> None:
    """Make keys of another gateway good on every node, as they are: clients keep theirs.

    No key is sent, only its SHA-256. A key that is there stays as it is, so the same file may be imported again.
    A key that was revoked here stays revoked.

    \b
    smg-admin keys import --from litellm keys.csv --dry-run
    smg-admin keys import --from csv keys.csv --tenant acme
    """
    options = options_of(context)
    read = _rows(file, origin, tenant, ignore_models=ignore_models)
    rows = [replace(row, models=()) for row in read.rows] if ignore_models else read.rows
    outcome = _send(options.client, rows, dry_run=dry_run)
    outcome["blocked"] = read.blocked
    if options.as_json:
        print_json({**outcome, "dry_run": dry_run})
    else:
        _say(outcome, read, dry_run=dry_run, opened=ignore_models)
    if outcome["refused"]:
        raise typer.Exit(1)


def _rows(file: Path, origin: str, tenant: str, *, ignore_models: bool) -> "KeyFile":
    if origin not in _FORMATS:
        raise typer.BadParameter(f"one of {', '.join(_FORMATS)}", param_hint="--from")
    read = _reader(origin)(_text(file), tenant=tenant)
    problems = [str(problem) for problem in read.problems]
    if not ignore_models:
        problems += [
            f"line {row.line}, column models: {why} (--ignore-models takes it over for every model)"
            for row in read.rows
            if (why := _unkept_models(row))
        ]
    if problems:
        for problem in problems[:_SAID_MAX]:
            tell(f"{file}, {problem}")
        more = len(problems) - _SAID_MAX
        raise AdminError(
            f"{file} is not imported"
            + (f"; there is more wrong with it ({more})" if more > 0 else "")
        )
    if not read.rows and not read.blocked:
        raise AdminError(f"{file} holds no keys")
    return read


def _unkept_models(row: "KeyRow") -> str:
    """Return why the models that a key is for cannot be kept, "" if they can."""
    from smg_node.access.restrictions import ENTRIES_MAX, MODEL_CHARACTERS_MAX

    if len(row.models) > ENTRIES_MAX:
        return (
            f"a key may be for {ENTRIES_MAX} models at most, and this one is for {len(row.models)}"
        )
    for model in row.models:
        if model in _OF_TEAMS:
            return f"{model} is a list that the other gateway has for the team"
        if not 1 <= len(model) <= MODEL_CHARACTERS_MAX or not model.isprintable():
            return f"a name has 1 to {MODEL_CHARACTERS_MAX} printable characters"
    return ""


def _reader(origin: str) -> Callable[..., "KeyFile"]:
    if origin == "smg":
        from smg_node.admin.key_files.smg_values import read_smg_values

        return read_smg_values
    if origin == "litellm":
        from smg_node.admin.key_files.litellm_export import read_litellm_export

        return read_litellm_export
    from smg_node.admin.key_files.key_table import read_key_table

    return read_key_table


def _text(file: Path) -> str:
    from smg_node.admin.key_files.key_row import FILE_BYTES_MAX

    try:
        if str(file) == "-":
            raw = sys.stdin.buffer.read(FILE_BYTES_MAX + 1)
        else:
            with file.open("rb") as source:
                raw = source.read(FILE_BYTES_MAX + 1)
        if len(raw) > FILE_BYTES_MAX:
            raise AdminError(f"{file} is larger than {FILE_BYTES_MAX >> 20} MiB")
        return raw.decode("utf-8-sig")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise AdminError(f"cannot read {file}: {reason}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise AdminError(f"{file}, line {line}: it is not UTF-8 text") from None


def _send(client: AdminClient, rows: "Sequence[KeyRow]", *, dry_run: bool) -> dict[str, Any]:
    """Return what came of all of it; what is sent in a batch is there before the next one is sent."""
    outcome: dict[str, Any] = {"created": 0, "unchanged": 0, "refused": [], "closes": False}
    outcome["unknown_on"], outcome["ends_ms"] = [], None
    timeout_s = max(_BATCH_TIMEOUT_S, client.timeout_s)
    for start in range(0, len(rows), _BATCH):
        batch = rows[start : start + _BATCH]
        body = {"keys": [_wish(row) for row in batch], "dry_run": dry_run}
        try:
            answer = client.ask("POST", *_IMPORT, body=body, timeout_s=timeout_s)
        except AdminError as error:
            if not start:
                raise
            raise AdminError(
                f"{error}; {outcome['created']} keys were taken over before, and the same file may be imported again"
            ) from None
        outcome["created"] += len(answer["created"])
        asked = {row.expires_ms for row in batch}
        ends = {one.get("expires_ms") for one in answer["created"]} - asked
        outcome["ends_ms"] = max(ends - {None}, default=outcome["ends_ms"])
        outcome["unchanged"] += answer["unchanged"]
        outcome["closes"] |= answer["closes"]
        outcome["unknown_on"] = answer.get("unknown_on", [])
        outcome["refused"] += [
            {
                "line": batch[one["index"]].line,
                **{name: one[name] for name in ("id", "code", "message")},
            }
            for one in answer["refused"]
        ]
        done = start + len(batch)
        if done % _PROGRESS_ROWS == 0 and done < len(rows):
            tell(f"{done} of {len(rows)} keys")
    return outcome


def _wish(row: "KeyRow") -> Mapping[str, Any]:
    wish: dict[str, Any] = {"sha256": row.sha256, "role": row.role, "name": row.name}
    if row.tenant:
        wish["tenant"] = row.tenant
    if row.expires_ms is not None:
        wish["expires_ms"] = row.expires_ms
    if row.models:
        wish["models"] = list(row.models)
    return wish


def _say(outcome: Mapping[str, Any], read: "KeyFile", *, dry_run: bool, opened: bool) -> None:
    taken = "would be taken over" if dry_run else "taken over"
    print(f"{outcome['created']} keys {taken}, {outcome['unchanged']} are there already")
    if outcome["ends_ms"]:
        tell(
            f"those without an end end with the key that takes them over, {format_time(outcome['ends_ms'])}"
        )
    if read.blocked:
        tell(f"{read.blocked} keys are blocked at their gateway, and left out")
    if short := sum(row.short for row in read.rows):
        tell(f"{short} keys have fewer than 32 characters: replace them, they could be guessed")
    if opened and (open_to_all := sum(bool(row.models) for row in read.rows)):
        tell(f"{open_to_all} keys may ask for every model here, and could not before")
    if outcome["unknown_on"]:
        named = ", ".join(outcome["unknown_on"])
        tell(f"members of an older version do not know such keys and answer them 401: {named}")
    for one in outcome["refused"][:_SAID_MAX]:
        tell(f"line {one['line']}: {one['message']}")
    if (more := len(outcome["refused"]) - _SAID_MAX) > 0:
        tell(f"… and {more} more are refused")
    if outcome["closes"] and not dry_run:
        tell(
            "these are the first admin keys: from now on every request needs a key (--key, SMG_KEY or --key-file for"
            " this command)"
        )
