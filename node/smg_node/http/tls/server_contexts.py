"""Server contexts: SSL contexts out of certificate files, one for each pair, chosen by the named host.

All contexts have the same authorities and ask clients for certificates alike: which of them a client
comes to is its own choice, so nothing that protects the node may depend on it. Source: RFC 8446, RFC 6066 3
(server names), RFC 6125 6.4 (a wildcard stands for one label).
"""

import ssl
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NoReturn

from cryptography import x509

from smg_node.http.tls_options import CertificatePair, TlsOptions

FILE_BYTES_MAX: Final = 1_048_576
_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Suites of TLS 1.2; Python's default offers two more, in CBC mode."""
_VERIFY_MODES: Final = {
    "off": ssl.CERT_NONE,
    "ask": ssl.CERT_OPTIONAL,
    "require": ssl.CERT_REQUIRED,
}


class TlsFilesError(Exception):
    """Files that no listener can use; the text names the file and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class ServerCertificates:
    """What a listener shows: its context, and when each pair's certificate begins and ends (Unix seconds)."""

    context: ssl.SSLContext
    begins_s: Mapping[str, float]
    expires_s: Mapping[str, float]

    def invalid_at(self, now_s: float) -> str:
        """Return the name of a pair that is not valid at this time, "" if there is none."""
        for name, expires_s in self.expires_s.items():
            if not self.begins_s[name] <= now_s < expires_s:
                return name
        return ""


def load(options: TlsOptions) -> ServerCertificates:
    """Return the certificates that the files hold now; TlsFilesError where they will not do. Blocks."""
    contexts: dict[str, ssl.SSLContext] = {}
    leaves: dict[str, x509.Certificate] = {}
    for name, pair in options.pairs.items():
        contexts[name] = _context(pair, options)
        leaves[name] = _leaf(pair.certificate)
    first = next(iter(contexts.values()))
    if len(contexts) > 1:
        first.sni_callback = _chooser(
            [
                (contexts[name], _host_names(leaf, options.pairs[name].certificate))
                for name, leaf in leaves.items()
            ]
        )
    return ServerCertificates(
        first,
        {name: leaf.not_valid_before_utc.timestamp() for name, leaf in leaves.items()},
        {name: leaf.not_valid_after_utc.timestamp() for name, leaf in leaves.items()},
    )


def host_names(certificate: x509.Certificate) -> Sequence[str]:
    """Return the DNS names of a certificate in lower case: its alternative names, or else its common name."""
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        return [name.lower() for name in extension.value.get_values_for_type(x509.DNSName)]
    except (x509.ExtensionNotFound, ValueError):
        names = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        return [str(name.value).lower() for name in names]


def _host_names(certificate: x509.Certificate, path: str) -> Sequence[str]:
    try:
        return host_names(certificate)
    except (ValueError, x509.DuplicateExtension) as error:
        raise TlsFilesError(f"{path} holds a certificate whose names cannot be read") from error


def day_of(unix_s: float) -> str:
    """Return a time as people read it: `2026-11-28 21:00 UTC`."""
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M UTC")


def undecodable_host(seen: "sys.UnraisableHookArgs") -> bool:
    """Whether Python complains that a client's host is not ASCII: it does so before `load`'s contexts are asked, with a
    traceback, and fails the handshake.
    """
    return isinstance(seen.exc_value, UnicodeDecodeError) and isinstance(seen.object, bytes)


def _context(pair: CertificatePair, options: TlsOptions) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.set_alpn_protocols(["http/1.1"])
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    for path in (pair.certificate, pair.key):
        _readable(path)
    try:
        context.load_cert_chain(pair.certificate, pair.key, password=_no_password)
    except _PasswordError as error:
        raise TlsFilesError(f"{pair.key} needs a password, which a node has not") from error
    except ssl.SSLError as error:
        raise TlsFilesError(_why_not(pair, error)) from error
    except OSError as error:
        # It was there a moment ago: somebody is replacing it.
        raise TlsFilesError(
            f"cannot read {pair.certificate} or {pair.key}: {error.strerror}"
        ) from error
    if options.client != "off":
        _ask_for_certificates(context, options)
    return context


def _ask_for_certificates(context: ssl.SSLContext, options: TlsOptions) -> None:
    context.verify_mode = _VERIFY_MODES[options.client]
    # A resumed session brings the certificate of its first handshake with it, whatever is believed by now.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET
    _load_authorities(context, options.client_authority, "holds no PEM certificate")
    if options.client_revoked:
        believed = context.cert_store_stats()["x509"]
        _load_authorities(context, options.client_revoked, "holds no PEM list of revoked ones")
        found = context.cert_store_stats()
        if not found["crl"]:
            raise TlsFilesError(f"{options.client_revoked} holds no PEM list of revoked ones")
        if found["x509"] > believed:
            # The library would believe them as it believes the authorities.
            raise TlsFilesError(
                f"{options.client_revoked} holds certificates beside lists of revoked ones; those that are believed"
                " belong into http.tls.client_authority"
            )
        context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF


def _load_authorities(context: ssl.SSLContext, path: str, wrong: str) -> None:
    _readable(path)
    try:
        context.load_verify_locations(path)
    except ssl.SSLError as error:
        raise TlsFilesError(f"{path} {wrong}") from error
    except OSError as error:
        raise TlsFilesError(f"cannot read {path}: {error.strerror}") from error


def _readable(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise TlsFilesError(f"cannot read {path}: {error.strerror}") from error
    if len(content) > FILE_BYTES_MAX:
        raise TlsFilesError(f"{path} is larger than {FILE_BYTES_MAX} bytes")
    return content


def _leaf(path: str) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(_readable(path))
    except ValueError as error:
        raise TlsFilesError(f"{path} holds no PEM certificate") from error


class _PasswordError(Exception):
    """A key wants a password."""


def _no_password() -> NoReturn:
    # Without this the library would ask on the terminal, and the node would wait for ever.
    raise _PasswordError


def _why_not(pair: CertificatePair, error: ssl.SSLError) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"{pair.key} is not the key of {pair.certificate}"
    # Of most that is no PEM file the library says no more than where in its source it noticed.
    why = f" ({error.reason.lower().replace('_', ' ')})" if error.reason else ""
    return f"{pair.certificate} and {pair.key} are no PEM certificate and private key{why}"


def _chooser(
    known: Sequence[tuple[ssl.SSLContext, Sequence[str]]],
) -> Callable[[ssl.SSLSocket | ssl.SSLObject, str | None, ssl.SSLContext], None]:
    by_name: dict[str, ssl.SSLContext] = {}
    for context, names in known:
        for name in names:
            by_name.setdefault(name, context)

    def choose(
        handshake: ssl.SSLSocket | ssl.SSLObject, host: str | None, first: ssl.SSLContext
    ) -> None:
        if not host:
            return
        host = host.lower().rstrip(".")
        found = by_name.get(host) or by_name.get("*." + host.partition(".")[2])
        if found is not None and found is not first:
            handshake.context = found

    return choose
