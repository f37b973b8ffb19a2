"""HTTP settings: makes the options of the HTTP surface and of its body readers from settings."""

from dataclasses import fields
from typing import TYPE_CHECKING

from smg_node.access.roles import BUILT_IN_ROLES, Roles
from smg_node.config.frozen_settings import Settings
from smg_node.dialects.options import ReaderOptions, Truth
from smg_node.http.http_options import HttpOptions

if TYPE_CHECKING:
    from smg_node.access.certificates import CertificateRule
    from smg_node.config.sections.auth import Auth
    from smg_node.config.sections.http_tls import HttpTls
    from smg_node.http.tls_options import TlsOptions


def reader_options(settings: Settings, tool_servers: Truth = False) -> ReaderOptions:
    """Return the options of body readers; `tool_servers` is whether tools can be run here."""
    limits = settings.limits
    same = {field.name for field in fields(ReaderOptions)} & set(dict(limits))
    return ReaderOptions(
        **{name: getattr(limits, name) for name in sorted(same)},
        unknown_parameters=settings.http.unknown_parameters,
        reasoning_field=settings.http.reasoning_field,
        template_from_request=settings.templates.allow_from_request,
        drop_billing_block=settings.messages.drop_billing_block,
        tool_servers=tool_servers,
    )


def http_options(settings: Settings) -> HttpOptions:
    """Return the options of listening, reading, writing and draining."""
    http, stream = settings.http, settings.stream
    return HttpOptions(
        listen=str(http.listen),
        metrics_listen=str(http.metrics_listen),
        server=http.server,
        tls=_tls_options(http.tls),
        metrics_tls=http.metrics_tls,
        admin_listen=http.admin_listen,
        admin_tls=http.admin_tls,
        admin_apart=bool(http.admin_listen),
        trusted_proxies=http.trusted_proxies,
        body_max_bytes=http.body_max_bytes,
        nesting_max=http.nesting_max,
        header_line_max_bytes=http.header_line_max_bytes,
        header_count_max=http.header_count_max,
        header_read_s=http.header_read_s,
        idle_keepalive_s=http.idle_keepalive_s,
        body_stall_s=http.body_stall_s,
        connections_max=http.connections_max,
        request_id_headers=http.request_id_headers,
        cors_allowed_origins=http.cors_allowed_origins,
        expose_routing_headers=http.expose_routing_headers,
        key_headers=settings.routing.key_headers,
        claim_max=settings.queue.claim_max,
        data_access=settings.auth.data,
        certificates=_certificate_rules(settings.auth),
        roles=_roles(settings.auth),
        tenant_keys_max=settings.auth.tenant_keys_max,
        request_s=settings.engine.request_s,
        commit_after_s=stream.commit_after_s,
        keepalive_s=stream.keepalive_s,
        coalesce_ms=stream.coalesce_ms,
        slow_client_bytes=stream.slow_client_bytes,
        slow_client_s=stream.slow_client_s,
        # Nobody balances load over a demo, so nobody needs time to notice its end.
        settle_s=0 if settings.demo else settings.drain.settle_s,
        grace_s=settings.drain.grace_s,
    )


def _tls_options(tls: "HttpTls") -> "TlsOptions | None":
    if tls.certificate is None:
        return None
    from smg_node.http.tls_options import CertificatePair, TlsOptions

    return TlsOptions(
        pair=CertificatePair(str(tls.certificate), str(tls.key)),
        more={
            name: CertificatePair(str(pair.certificate), str(pair.key))
            for name, pair in tls.more.items()
        },
        client=tls.client,
        client_authority=str(tls.client_authority or ""),
        client_revoked=str(tls.client_revoked or ""),
        handshake_s=tls.handshake_s,
        handshakes_max=tls.handshakes_max,
        hsts_s=tls.hsts_s,
    )


def _certificate_rules(auth: "Auth") -> "tuple[CertificateRule, ...]":
    if not auth.certificates:
        return ()
    from smg_node.access.certificates import CertificateRule

    return tuple(
        CertificateRule(rule.match, rule.role, rule.tenant) for rule in auth.certificates.values()
    )


def _roles(auth: "Auth") -> Roles:
    return Roles(auth.roles) if auth.roles else BUILT_IN_ROLES
