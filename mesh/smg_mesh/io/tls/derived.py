"""Derived certificates: made from the keyring; every holder of a key of
the ring can show and check them.

Each key of the ring is, through BLAKE2b with the label, the private key of one P-256 authority. All
nodes derive the same authorities, so nothing has to be handed out. At start a node makes itself a leaf key
and signs it with the authority of the primary key; it trusts the authorities of all keys.

What it shows is a chain: the leaf, and the authority of each key vouched for by that of the next key of
the ring. So two nodes trust each other as long as their rings have *any* key in common, whichever is
primary where: during every step of a rotation, and also when a node returns that has slept through one
and knows the old key only.

The validity is fixed and wide. A clock that is wrong must not cut a node off, and what limits a
certificate here is the key, which is removed from the ring, and the process, which ends.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import pairwise
from typing import Final, Protocol

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from smg_mesh.io.tls.material import Material
from smg_mesh.io.tls.names import dns_name, mesh_name

_CURVE: Final = ec.SECP256R1()
_CURVE_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_PERSON: Final = b"smg-mesh-tls-ca1"
_NOT_BEFORE: Final = datetime(2000, 1, 1, tzinfo=UTC)
_NOT_AFTER: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
"""What RFC 5280 has for "no well-defined end"."""


class RingKeys(Protocol):
    """Interface of a keyring that certificates need."""

    def keys(self) -> Sequence[bytes]:
        """Return the keys, 32 bytes each, the primary one first."""
        ...


class DerivedMaterial:
    """The certificates of one process, made anew whenever the ring has changed."""

    def __init__(self, ring: RingKeys, *, name: str, label: str) -> None:
        self._ring = ring
        self._name = name
        self._label = label
        self._keys: tuple[bytes, ...] = ()
        self._material: Material | None = None

    def read(self) -> Material:
        """Return what is in force: the same object as long as the ring is the same."""
        keys = tuple(self._ring.keys())
        if self._material is None or keys != self._keys:
            self._material = _made(keys, self._name, self._label)
            self._keys = keys
        return self._material


def authority_key(key: bytes, label: str) -> ec.EllipticCurvePrivateKey:
    """Return the private key of the authority that `key` stands for under `label`.

    64 bytes of BLAKE2b modulo the order: the bias is below 2⁻²⁵⁶.
    """
    digest = blake2b(label.encode(), digest_size=64, key=key, person=_PERSON).digest()
    return ec.derive_private_key(1 + int.from_bytes(digest) % (_CURVE_ORDER - 1), _CURVE)


def _made(keys: Sequence[bytes], name: str, label: str) -> Material:
    authorities = [authority_key(key, label) for key in keys]
    leaf = ec.generate_private_key(_CURVE)
    chain = [_leaf(leaf.public_key(), authorities[0], name, label)]
    chain += [_authority(key, by=older) for key, older in pairwise(authorities)]
    return Material(
        certificate=_pem(chain),
        key=leaf.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        authorities=_pem([_authority(key, by=key) for key in authorities]),
    )


def _pem(certificates: Sequence[x509.Certificate]) -> bytes:
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates)


def _authority(
    key: ec.EllipticCurvePrivateKey, *, by: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    """Return the certificate of one authority, vouched for by another or by itself."""
    public, issuer = key.public_key(), by.public_key()
    return (
        _certificate(_subject(public), _subject(issuer), public)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), critical=False)
        .sign(by, SHA256())
    )


def _leaf(
    key: ec.EllipticCurvePublicKey, authority: ec.EllipticCurvePrivateKey, name: str, label: str
) -> x509.Certificate:
    issuer = authority.public_key()
    names = [x509.DNSName(dns_name(name)), x509.DNSName(mesh_name(label))]
    uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    return (
        _certificate(_named("smg mesh node"), _subject(issuer), key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), critical=False)
        .sign(authority, SHA256())
    )


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_NOT_BEFORE)
        .not_valid_after(_NOT_AFTER)
    )


def _subject(key: ec.EllipticCurvePublicKey) -> x509.Name:
    """Return the name of an authority: one of its own for each key, since verifiers look it up by name."""
    digest = x509.SubjectKeyIdentifier.from_public_key(key).digest
    return _named(f"smg mesh authority {digest.hex()[:16]}")


def _named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
