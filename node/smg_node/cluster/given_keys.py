"""Given keys: those in a node's own settings, as SMG takes them on its command line; good on this node alone."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from smg_mesh.shared import FOREIGN, KeyRecord
from smg_node.access.foreign_key import foreign_digest, foreign_id
from smg_node.access.smg_flags import (
    GivenKey,
    GivenKeyError,
    control_plane_key,
    shared_key,
    tenant_key,
)
from smg_node.config.schema.problems import ConfigurationError, Problem

if TYPE_CHECKING:
    from smg_node.config.sections.auth import Auth


class _Secret(Protocol):
    """As much of a secret setting as is needed here."""

    def get_secret_value(self) -> str: ...


_SHORT: Final = "has fewer than 32 characters: it could be guessed"


class GivenKeys:
    """Records of the keys by id, and what an operator should know of them."""

    def __init__(self, records: Mapping[str, KeyRecord], warnings: tuple[str, ...]) -> None:
        self.records: Final = records
        self.warnings: Final = warnings


def read_given_keys(auth: "Auth") -> GivenKeys:
    """Return the keys of these settings; ConfigurationError that names knob and place, and never a key."""
    reading = _Reading()
    for number, secret in enumerate(auth.control_plane_api_keys):
        reading.take(f"auth.control_plane_api_keys[{number}]", control_plane_key, secret)
    for number, secret in enumerate(auth.tenant_api_keys):
        reading.take(f"auth.tenant_api_keys[{number}]", tenant_key, secret)
    if auth.api_key is not None:
        # In SMG it administers as well until there are keys for that.
        role: Final = "user" if auth.control_plane_api_keys else "admin"
        reading.take("auth.api_key", lambda key: shared_key(key, role), auth.api_key)
    if reading.problems:
        raise ConfigurationError(reading.problems)
    return GivenKeys(reading.records, tuple(reading.warnings))


class _Reading:
    def __init__(self) -> None:
        self.records: dict[str, KeyRecord] = {}
        self.warnings: list[str] = []
        self.problems: list[Problem] = []
        self._places: dict[str, str] = {}

    def take(self, place: str, read: Callable[[str], GivenKey], secret: _Secret) -> None:
        try:
            key = read(secret.get_secret_value())
        except GivenKeyError as error:
            part = f"{error.part}: " if error.part else ""
            self.problems.append(Problem(place, f"{part}{error}"))
            return
        digest = foreign_digest(key.sha256)
        key_id = foreign_id(digest)
        if key_id in self.records:
            self.problems.append(Problem(place, f"the same key as {self._places[key_id]}"))
            return
        self._places[key_id] = place
        self.records[key_id] = KeyRecord(
            key_id, key.tenant, key.role, name=key.name, digest=digest, kind=FOREIGN
        )
        if key.short:
            self.warnings.append(f"{place} {_SHORT}")
