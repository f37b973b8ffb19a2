"""TLS of the streams: three ways of knowing which node is at the other end, or of not asking.

| mode | certificates | who is let in |
|---|---|---|
| derived | made at start from the keyring, by every node for itself | any process that holds a key of the ring, under this label |
| files | the operator's | any process with a certificate of that authority with the mesh's name in it |
| plain | none | any process: `insecure`, on purpose |

A certificate carries two DNS names: the node's, and `mesh.LABEL`. A channel to a known member expects its
name, a channel to a seed the mesh's; the serving side compares the names with the one the caller claims.
Names, not addresses: a node may move.
"""

from smg_mesh.io.tls.credentials import Credentials, PlainCredentials, TlsCredentials
from smg_mesh.io.tls.derived import DerivedMaterial, RingKeys
from smg_mesh.io.tls.files import FileMaterial
from smg_mesh.io.tls.names import dns_name, mesh_name

__all__ = [
    "Credentials",
    "DerivedMaterial",
    "FileMaterial",
    "PlainCredentials",
    "RingKeys",
    "TlsCredentials",
    "dns_name",
    "mesh_name",
]
