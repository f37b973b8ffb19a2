"""Manifest of workers: the text of a file, or what a program printed, becomes sightings. Pure.

A list holds worker URLs, as `--worker` takes them, or objects as SMG's manifest has them; both may lie below `workers`:

    ["grpc://10.0.0.7:50051?priority=60", "10.0.0.8:50051"]
    {"version": 1, "workers": [{"id": "a", "url": "http://10.0.0.9:8000", "worker_type": "prefill", "bootstrap_port": 8998}]}

A text with any mistake is refused whole, with the line and the field: half of a list would take workers away.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from smg_node.config.address import join_host_port
from smg_node.config.schema.problems import kind_text, printable
from smg_node.config.schema.suggestions import did_you_mean
from smg_node.config.worker_url import (
    BOOTSTRAP_PORT_LABEL,
    CONNECTOR_LABEL,
    ENGINE_ID_LABEL,
    ROLES,
    WorkerUrl,
    parse_worker_url,
)
from smg_node.core.errors import SmgError
from smg_node.discovery.file.document import Document, DocumentError, Path, read_document
from smg_node.discovery.sighting import Endpoint, Sighting

WORKERS_MAX: Final = 16_384
"""As many as the registry takes."""
VERSION: Final = 1
KV_ROLE_LABEL: Final = "kv_role"
"""What SMG's manifest says of an engine beside its type; for operators, nothing depends on it."""

_TOP: Final = ("version", "workers")
_FIELDS: Final = (
    "id",
    "url",
    "worker_type",
    "bootstrap_port",
    "model_id",
    "kv_connector",
    "kv_role",
    "kv_engine_id",
)
_TEXT_MAX: Final = 256
_BOOTSTRAP_ROLES: Final = ("prefill", "encode")
_PORT_MAX: Final = 65_535
_LOOPBACK: Final = "127.0.0.1"
_Kind: TypeAlias = Literal["text", "number"]


class ManifestError(Exception):
    """A text that lists no workers; the message says the line and the field."""


class Manifest(NamedTuple):
    """Workers of a text. `closed` is false where a longer text could go on from its end."""

    sightings: Mapping[Endpoint, Sighting]
    closed: bool


def read_manifest(raw: bytes) -> Manifest:
    """Return the workers that a text lists; ManifestError for the first mistake in it."""
    try:
        document = read_document(raw)
        return Manifest(MappingProxyType(_Reader(document).sightings()), document.closed)
    except DocumentError as error:
        raise ManifestError(printable(str(error))) from None


class _Reader:
    """Reader of one document."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def sightings(self) -> dict[Endpoint, Sighting]:
        rows, at = self._rows()
        if len(rows) > WORKERS_MAX:
            raise self._error(at, f"it lists {len(rows)} workers, at most {WORKERS_MAX} are taken")
        found: dict[str, tuple[int, Sighting]] = {}
        ids: dict[str, int] = {}
        for number, row in enumerate(rows):
            path = (*at, number)
            sighting = self._sighting(path, row)
            name = sighting.instance
            if name and ids.setdefault(name, number) != number:
                raise self._error(
                    (*path, "id"), f"workers {ids[name]} and {number} are both called {name[:60]!r}"
                )
            same = found.setdefault(_place(sighting.url), (number, sighting))
            if same[1].url != sighting.url or (name and same[0] != number):
                raise self._error(
                    path, f"workers {same[0]} and {number} have one address, {sighting.endpoint}"
                )
        return {one.endpoint: one for _, one in found.values()}

    def _rows(self) -> tuple[list[Any], Path]:
        value = self._document.value
        if isinstance(value, list):
            return value, ()
        if not isinstance(value, dict):
            raise self._error((), f"it must be a list of workers, and is {kind_text(value)}")
        self._only((), value, _TOP)
        if "workers" not in value:
            raise self._error((), "workers is missing")
        if "version" in value:
            version = value["version"]
            if type(version) is not int or version != VERSION:
                raise self._error(
                    ("version",), f"it is {kind_text(version)}; this node reads version {VERSION}"
                )
        rows = value["workers"]
        if not isinstance(rows, list):
            raise self._error(("workers",), f"it must be a list, and is {kind_text(rows)}")
        return rows, ("workers",)

    def _sighting(self, path: Path, row: object) -> Sighting:
        if isinstance(row, str):
            return Sighting(self._url(path, row), origin=_named(path))
        if not isinstance(row, dict):
            raise self._error(
                path, f"it must be a worker URL or an object, and is {kind_text(row)}"
            )
        self._only(path, row, _FIELDS)
        url = self._url((*path, "url"), self._text(path, row, "url"))
        name = self._text(path, row, "id") if row.get("id") is not None else ""
        origin = f"worker {name}" if name else _named(path)
        return Sighting(self._described(path, row, url), instance=name, origin=origin)

    def _described(self, path: Path, row: Mapping[str, Any], url: WorkerUrl) -> WorkerUrl:
        role = self._optional(path, row, "worker_type") or url.role
        if role not in ROLES:
            raise self._error(
                (*path, "worker_type"),
                f"{role[:40]!r} is unknown; known: {', '.join(ROLES)}{did_you_mean(role, ROLES)}",
            )
        labels = dict(url.labels)
        port = row.get("bootstrap_port")
        if port is not None:
            labels[BOOTSTRAP_PORT_LABEL] = self._bootstrap_port(path, port, role)
        for field, label in (
            ("kv_connector", CONNECTOR_LABEL),
            ("kv_engine_id", ENGINE_ID_LABEL),
            ("kv_role", KV_ROLE_LABEL),
        ):
            said = self._optional(path, row, field)
            if said:
                labels[label] = said
        described = replace(
            url,
            role=role,
            model=self._optional(path, row, "model_id") or url.model,
            labels=MappingProxyType(dict(sorted(labels.items()))),
        )
        # What is put together here is held to what any worker URL is held to.
        return self._url(path, str(described))

    def _bootstrap_port(self, path: Path, port: object, role: str) -> str:
        here = (*path, "bootstrap_port")
        if type(port) is not int or not 0 < port <= _PORT_MAX:
            raise self._error(
                here, f"it must be a port from 1 to {_PORT_MAX}, and is {kind_text(port)}"
            )
        if role not in _BOOTSTRAP_ROLES:
            raise self._error(here, f"only workers for prefill and encode have one, and not {role}")
        return str(port)

    def _optional(self, path: Path, row: Mapping[str, Any], field: str) -> str:
        """Return a text, "" where there is none."""
        said = row.get(field)
        if said is None or (isinstance(said, str) and not said.strip()):
            return ""
        return self._text(path, row, field)

    def _text(self, path: Path, row: Mapping[str, Any], field: str) -> str:
        here = (*path, field)
        if row.get(field) is None:
            raise self._error(path, f"{field} is missing")
        said = row[field]
        if not isinstance(said, str):
            raise self._error(here, f"it must be text, and is {kind_text(said)}")
        if not said.strip():
            raise self._error(here, "it must not be empty")
        if field != "url" and (len(said) > _TEXT_MAX or not said.isprintable()):
            raise self._error(here, f"it must be printable text of at most {_TEXT_MAX} characters")
        return said

    def _url(self, path: Path, text: str) -> WorkerUrl:
        try:
            return parse_worker_url(text)
        except SmgError as error:
            raise self._error(path, error.message) from None

    def _only(self, path: Path, row: Mapping[Any, Any], known: tuple[str, ...]) -> None:
        for key in row:
            if key not in known:
                name = str(key)
                hint = did_you_mean(name, known) or f"; known: {', '.join(known)}"
                here = (*path, key) if isinstance(key, str) else path
                raise self._error(here, f"the field is unknown{hint}", name=name)

    def _error(self, path: Path, message: str, *, name: str = "") -> DocumentError:
        where = _named(path)
        if name and not where.endswith(name):
            where = f"{where}.{name}" if where else name
        subject = f"{where[:200]}: " if where else ""
        return DocumentError(f"{subject}{message}", self._document.line_of(path))


def _named(path: Path) -> str:
    """Return a path as `workers[3].url`."""
    words = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return words.removeprefix(".") if not words.startswith("[") else f"workers{words}"


def _place(url: WorkerUrl) -> str:
    """Return what tells endpoints apart, whatever the scheme, with one name for this host."""
    host = url.host.removesuffix(".")
    return join_host_port(_LOOPBACK if host == "localhost" else host, url.port)
