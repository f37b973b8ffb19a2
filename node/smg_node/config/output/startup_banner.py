"""Startup banner: where the node listens, what it serves, and to whom it is open."""

from collections.abc import Mapping
from typing import Final

from smg_node.config.address import Address
from smg_node.config.sections.auth import Auth
from smg_node.config.sections.mesh import MeshSection
from smg_node.config.sources.loader import Loaded
from smg_node.native import compiled

# What keys the cluster has is not known yet; the log says it when it is.
_ADMIN: Final = (
    "answers loopback only, until an admin key exists (smg-admin keys create --role admin)"
)
_SOCKET: Final = "answers the user that the node runs as, and root, at"
_ADMIN_FILE: Final = "needs an operator's or an administrator's key"
_DATA: Final[Mapping[str, str]] = {
    "auto": "open to everyone who can reach it, until an admin key exists",
    "open": "open to everyone who can reach it (auth.data)",
    "closed": "needs a key (auth.data)",
}
_DATA_FILE: Final = "needs a key"
_CERTIFICATES: Final = ", or a certificate that auth.certificates has a rule for"
_TOKENS: Final = ", or a token of auth.issuers"
_ALONE: Final = "closed: this node runs alone; --mesh-key FILE opens it (smg-admin cluster keyring generate makes one)"
_PYTHON: Final = "Python, which is slower: no C compiler was there when this was installed"
_WORKERS_SHOWN_MAX: Final = 8
_SEEDS_SHOWN_MAX: Final = 8


def startup_facts(loaded: Loaded, *, version: str) -> Mapping[str, str]:
    """Return the facts a node starts with, label to words, in reading order."""
    settings = loaded.settings
    urls = settings.workers.listed
    more = f" and {len(urls) - _WORKERS_SHOWN_MAX} more" if len(urls) > _WORKERS_SHOWN_MAX else ""
    none = (
        "two simulated engines" if settings.demo else "none yet: add one with smg-admin workers add"
    )
    return {
        "version": version,
        "packing": "machine code" if compiled() else _PYTHON,
        "node": settings.name,
        "http": _say_address(settings.http.scheme, settings.http.listen),
        "metrics": _say_address(settings.http.metrics_scheme, settings.http.metrics_listen),
        "workers": (", ".join(urls[:_WORKERS_SHOWN_MAX]) + more) or none,
        "policy": settings.routing.policy,
        "mesh": _say_mesh(settings.mesh),
        "data dir": str(settings.data_dir),
        "config": str(loaded.file) if loaded.file is not None else "no file",
        "data API": _say_access(settings.auth),
        "admin API": _say_admin(settings.auth, settings.http.admin_listen),
    }


def _say_access(auth: Auth) -> str:
    """Return in words who may use the data API, as far as the configuration says."""
    others = _others(auth)
    if auth.data == "auto" and (others or _has_keys(auth)):
        return _DATA_FILE + others
    return _DATA[auth.data] + (others if auth.data == "closed" else "")


def _say_admin(auth: Auth, where: str) -> str:
    """Return in words who may use the admin API, and where it is apart from the public one, as far as the configuration
    says.
    """
    if where.startswith("unix:"):
        return f"{_SOCKET} {where}"
    if where:
        return f"at {where} only; {_say_admin(auth, '')}"
    others = _others(auth)
    return _ADMIN_FILE + others if others or _has_keys(auth) else _ADMIN


def _has_keys(auth: Auth) -> bool:
    return auth.gives_keys or auth.admin_key_file is not None


def _others(auth: Auth) -> str:
    """Return in words which credentials are taken beside keys, "" for none."""
    return (_CERTIFICATES if auth.certificates else "") + (_TOKENS if auth.issuers else "")


def _say_mesh(mesh: MeshSection) -> str:
    """Return in words where this node meets its peers, or how to get any."""
    if not mesh.enabled:
        return _ALONE
    how = "in PLAIN TEXT (--insecure-mesh)" if mesh.insecure else f"encrypted with {mesh.key_file}"
    where = f"any free port of {mesh.listen.host}" if mesh.listen.port == 0 else str(mesh.listen)
    advertised = f", advertised as {mesh.advertise}" if mesh.advertise else ""
    seeds = mesh.join[:_SEEDS_SHOWN_MAX]
    more = f" and {len(mesh.join) - len(seeds)} more" if len(mesh.join) > len(seeds) else ""
    joining = f"joins {', '.join(seeds)}{more}" if seeds else "waits to be joined"
    return f"{where}{advertised}, {how}, cluster {mesh.label!r}, {joining}"


def render_banner(facts: Mapping[str, str]) -> str:
    """Return the facts as one block for a terminal."""
    head, *rest = facts.items()
    return (
        "\n".join([f"smg-node {head[1]}", *(f"  {label:<11}{said}" for label, said in rest)]) + "\n"
    )


def _say_address(scheme: str, address: Address) -> str:
    return f"any free port of {address.host}" if address.port == 0 else f"{scheme}://{address}"
