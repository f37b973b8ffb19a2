"""Client certificates as credentials: the name in a verified certificate, and the rules that give it a tenant and a role.

Whether a certificate is genuine is the TLS layer's to say; here it has been verified already. Source: RFC
5280 4.2.1.6 (alternative names), the SPIFFE standard for names of workloads (`spiffe://DOMAIN/PATH`).
"""

import re
from base64 import b32encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any, Final

from smg_node.access.identity import Identity, Role
from smg_node.core.errors import ErrorKind, SmgError

TENANT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", re.ASCII)
_NAME_MAX: Final = 512
_SHOWN_MAX: Final = 128
_KEY_ID_CHARACTERS: Final = 15
_PREFIX: Final = "c"
_SPIFFE: Final = "spiffe://"
_KINDS: Final = ("URI", "email", "DNS")
"""Kinds of alternative names, the first one that a certificate has counts; SPIFFE's come before all."""
_GAP: Final = re.compile(r"\{([1-9])\}")


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A verified certificate: the name that counts, and when it expires in Unix milliseconds."""

    name: str
    expires_ms: int


@dataclass(frozen=True, slots=True)
class CertificateRule:
    """What certificates whose name matches are worth.

    `match` is the name; each `*` in it stands for characters other than `/`. `tenant` may hold what they
    stood for: `{1}` for the first.
    """

    match: str
    role: Role
    tenant: str


class CertificateRules:
    """Rules in the order in which they are tried; the first that matches counts."""

    def __init__(self, rules: Sequence[CertificateRule]) -> None:
        self._rules: Final = [(_pattern(rule.match), rule) for rule in rules]

    def identify(self, certificate: ClientCertificate) -> Identity:
        """Return the identity behind a certificate; FORBIDDEN `certificate_not_mapped`, `tenant_not_usable`."""
        for pattern, rule in self._rules:
            found = pattern.fullmatch(certificate.name)
            if found is None:
                continue
            parts = found.groups()
            tenant = _GAP.sub(partial(_filled, parts), rule.tenant)
            if not TENANT.fullmatch(tenant):
                raise SmgError(
                    ErrorKind.FORBIDDEN,
                    f"the certificate of {certificate.name[:_SHOWN_MAX]!r} gives a tenant that none can be called",
                    code="tenant_not_usable",
                )
            return Identity(
                key_id_of(certificate.name),
                tenant,
                rule.role,
                certificate.expires_ms,
                f"certificate:{shown(certificate.name)}",
            )
        raise SmgError(
            ErrorKind.FORBIDDEN,
            f"no rule of auth.certificates is for {shown(certificate.name)!r}",
            code="certificate_not_mapped",
        )


def _filled(parts: Sequence[str], gap: re.Match[str]) -> str:
    return parts[int(gap[1]) - 1]


def key_id_of(name: str) -> str:
    """Return the id under which a certificate's usage and limits are kept: of its name, so that the next
    certificate of the same name has it too.
    """
    digest = blake2b(name.encode("utf-8", "surrogateescape"), digest_size=16).digest()
    return _PREFIX + b32encode(digest).decode("ascii").lower()[:_KEY_ID_CHARACTERS]


def shown(name: str) -> str:
    """Return a name as logs show it: short, and printable."""
    return "".join(one if one.isprintable() else "?" for one in name[:_SHOWN_MAX])


def read_certificate(found: Mapping[str, Any], expires_s: float) -> ClientCertificate | None:
    """Return what counts of a certificate as `ssl.SSLObject.getpeercert` tells it; None if it has no name.

    The first of: a SPIFFE URI, another URI, an e-mail address, a DNS name, the common name. A subject may
    be empty where there are alternative names.
    """
    alternatives = [(kind, name) for kind, name in found.get("subjectAltName", ()) if name]
    names = [name for kind, name in alternatives if kind == "URI" and name.startswith(_SPIFFE)]
    for kind in _KINDS:
        names += [name for known, name in alternatives if known == kind]
    names += [
        value
        for attributes in found.get("subject", ())
        for attribute, value in attributes
        if attribute == "commonName" and value
    ]
    if not names or len(names[0]) > _NAME_MAX:
        return None
    return ClientCertificate(names[0], round(expires_s * 1000))


def _pattern(match: str) -> re.Pattern[str]:
    return re.compile("([^/]*)".join(re.escape(part) for part in match.split("*")), re.DOTALL)
