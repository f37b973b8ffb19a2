"""Mesh options: translates the node's settings into the options of mesh, SWIM and shared state."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from smg_mesh.config import PROFILES, MeshOptions, StateOptions, SwimOptions, TlsFiles
from smg_node.config.frozen_settings import Settings
from smg_node.http.ports.keys import CLOSED_META, KEYS_FORM, KEYS_META

if TYPE_CHECKING:
    from smg_node.config.sections.mesh import MeshSection, MeshTls


_LABEL: Final = "default"


def mesh_options(settings: Settings, *, version: str) -> MeshOptions:
    """Return the options of this node's mesh.

    What it keeps lies in a folder of its own name, so that several nodes may share a data dir.
    """
    mesh = settings.mesh
    return MeshOptions(
        name=settings.name,
        listen_host=mesh.listen.host,
        listen_port=mesh.listen.port,
        advertise=mesh.advertise,
        join=mesh.join,
        swim=swim_options(mesh),
        label=mesh.label,
        key_file=mesh.key_file,
        insecure=mesh.insecure,
        tls=_tls_files(mesh.tls),
        data_dir=settings.data_dir / "mesh" / settings.name,
        meta={"version": version, KEYS_META: KEYS_FORM, **_closed(settings)},
        join_grace_s=mesh.join_grace_s,
        expect=mesh.expect,
        state=state_options(settings),
    )


def state_options(settings: Settings) -> StateOptions:
    """Return the options of shared state, with a mesh and without one."""
    return StateOptions(
        join_grace_ms=round(settings.mesh.join_grace_s * 1000),
        hint_bytes_per_s=settings.kv.share_bytes_per_s,
    )


def state_homes(settings: Settings) -> tuple[Path, tuple[Path, ...]]:
    """Return where this node keeps shared state, and where it did under other circumstances.

    Alone in the data dir itself, whatever its name is; in a mesh beside its other memories, and for another
    label in another folder: what one cluster knows is none of another's business.
    """
    own = settings.data_dir / "mesh" / settings.name
    if settings.mesh.label != _LABEL:
        own = own / f"of-{settings.mesh.label}"
    alone = settings.data_dir
    return (own, (alone,)) if settings.mesh.enabled else (alone, (own,))


def swim_options(mesh: "MeshSection") -> SwimOptions:
    """Return the profile's timers with what is set laid over them."""
    return replace(PROFILES[mesh.profile], **mesh.swim_changes)


def _tls_files(tls: "MeshTls") -> TlsFiles | None:
    if tls.certificate is None or tls.key is None or tls.authority is None:
        return None
    return TlsFiles(certificate=tls.certificate, key=tls.key, authority=tls.authority)


def _closed(settings: Settings) -> Mapping[str, bool]:
    """Return what is published of whether this node's own settings close it; nothing where they do not."""
    auth = settings.auth
    keys = auth.admin_key_file is not None or auth.gives_keys
    return {CLOSED_META: True} if keys or auth.certificates or auth.issuers else {}
