"""Providers of the whole cluster: definitions of accounts at vendors, and routes over their models, one value per name.

Values are JSON, as settings are: `{"spec": {…}, "secrets": {NAME: sealed, in base64}}` for a provider. What a provider
or route means is for the reader that knows vendors; here they are kept, passed on, and their secrets sealed anew after
a rotation of keys. A node of a release without this namespace does not hold it: it has them from others once it is newer.
"""

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from smg_mesh.crdt.namespace import Namespace
from smg_mesh.state.settings import SettingsView, SettingValue

PROVIDER: Final = "provider/"
"""How the key of a provider begins; its name follows."""
ROUTE: Final = "route/"
"""The same of a route."""
RESEALED_MAX: Final = 64
"""So many values are written anew at once."""


def sealed_text(sealed: bytes) -> str:
    """Return a sealed secret as a value holds it."""
    return base64.b64encode(sealed).decode()


def sealed_in(value: object) -> dict[str, bytes]:
    """Return the sealed secrets of a value by name; what is none is left out."""
    secrets = value.get("secrets") if isinstance(value, dict) else None
    found: dict[str, bytes] = {}
    for name, text in secrets.items() if isinstance(secrets, dict) else ():
        if isinstance(text, str):
            try:
                found[str(name)] = base64.b64decode(text, validate=True)
            except (binascii.Error, ValueError):
                continue
    return found


class ProvidersView(SettingsView):
    """The namespace `providers` as node `me` reads and writes it. StateError as in `Namespace`."""

    def __init__(self, namespace: Namespace, me: str) -> None:
        super().__init__(namespace, me)

    def sealed(self) -> list[bytes]:
        """Return all sealed secrets."""
        return [secret for one in self.all() for secret in sealed_in(one.value).values()]

    def reseal(self, renew: Callable[[bytes], bytes | None], mine: Callable[[str], bool]) -> int:
        """Write secrets sealed anew where `renew` gives other bytes, of values whose owner is `mine`; return how many
        values were written. Call again until it is 0.
        """
        written = 0
        for one, renewed in self._renewed(renew, mine):
            assert isinstance(one.value, dict)
            self.set(one.key, {**one.value, "secrets": dict(renewed)}, version=one.version)
            written += 1
            if written >= RESEALED_MAX:
                break
        return written

    def _renewed(
        self, renew: Callable[[bytes], bytes | None], mine: Callable[[str], bool]
    ) -> Iterator[tuple[SettingValue, Mapping[str, Any]]]:
        for one in self.all():
            held = sealed_in(one.value)
            if not held or not mine(one.owner):
                continue
            anew = {name: renew(secret) or secret for name, secret in held.items()}
            if anew != held:
                yield one, {name: sealed_text(secret) for name, secret in anew.items()}
