"""Announcement of a node that is up: where it listens, and to whom it is open that should not be.

Scripts and tests wait for the last line.
"""

import logging
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from smg_node.config.address import Address
from smg_node.config.frozen_settings import Settings
from smg_node.http.app import Server
from smg_node.http.http_parts import HttpParts
from smg_node.http.middleware.authorization import is_loopback
from smg_node.http.server.listen_sockets import UNIX

_LOCALHOST: Final = "localhost"
_log: Final = logging.getLogger("smg_node")


def announce(settings: Settings, server: Server, address: Address) -> None:
    """Log where the node listens; `address` is where clients reach it."""
    http = settings.http
    for path in readable_keys(settings):
        _log.warning("everybody on this machine may read the secret in %s (chmod o= it)", path)
    if is_open(server.parts, address):
        _log.warning(
            "everybody who reaches %s is answered without a key: no admin key exists (smg-admin keys create --role"
            " admin makes one; auth.data closed refuses clients without a key)",
            address,
        )
    if lacks_administrator(server.parts):
        _log.warning(
            "nobody may administer this node: credentials are needed, and no key, no issuer's role_map and no rule for"
            " certificates is worth the role admin (auth.admin_key_file with a key of smg-admin keys generate lets you in)"
        )
    if server.metrics_address is not None:
        _log.info("metrics on %s://%s", http.metrics_scheme, server.metrics_address)
    if operators := server.operators_address:
        where = operators if operators.startswith(UNIX) else f"{http.admin_scheme}://{operators}"
        _log.info("operators are answered on %s", where)
    _log.info("listening on %s://%s", http.scheme, address)


def readable_keys(settings: Settings) -> Sequence[Path]:
    """Return the files of keys that the settings name and that any user of this machine may read; those of
    http.tls are looked at where they are read.
    """
    named = (
        settings.auth.admin_key_file,
        settings.mesh.key_file,
        settings.engine.tls.key,
        settings.storage.tls.key,
    )
    return [path for path in named if path is not None and _is_readable(path)]


def _is_readable(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & stat.S_IROTH)
    except OSError:
        return False


def lacks_administrator(parts: HttpParts) -> bool:
    """Whether a node that needs credentials lets in nobody who may everything; unknown is no until the cluster's keys are
    known.
    """
    keys = parts.authenticator
    if not keys.settled or not (keys.closed or parts.options.certificates):
        return False
    # Loaded where something closes the node: most that are tried out are open.
    from smg_node.http.administrators import has_administrator

    if has_administrator(parts, {}):
        return False
    issuers = parts.token_access
    return issuers is None or not has_administrator(parts, issuers().mapped())


def is_open(parts: HttpParts, address: Address) -> bool:
    """Whether clients from other machines need no credential; unknown is no until the cluster's keys are known."""
    options, keys = parts.options, parts.authenticator
    if options.data_access == "closed" or address.host == _LOCALHOST or is_loopback(address.host):
        return False
    if options.data_access == "open":
        return True
    return keys.settled and not keys.closed and not options.certificates
