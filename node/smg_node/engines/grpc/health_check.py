"""Health check: the standard gRPC health service, in the two fields of its two messages. Pure.

`grpc.health.v1.Health/Check` asks with a service name (field 1, text) and answers with a status
(field 1, enum). Written by hand: a dependency for four bytes would be more to carry.
"""

from typing import Final

HEALTH_CHECK: Final = "/grpc.health.v1.Health/Check"
SERVING: Final = 1

_SERVICE_TAG: Final = b"\x0a"
_STATUS_TAG: Final = 0x08


def health_request(service: str) -> bytes:
    """Return the HealthCheckRequest for a service of at most 127 bytes."""
    name = service.encode()
    assert len(name) < 128, "longer names would need a longer length"
    return _SERVICE_TAG + bytes((len(name),)) + name if name else b""


def health_status(data: bytes) -> int:
    """Return the status of a HealthCheckResponse; 0 (UNKNOWN) for an empty or unreadable one.

    The last one wins, as protobuf has it; statuses are small, so one byte holds them.
    """
    status = 0
    if len(data) % 2:
        return 0
    for at in range(0, len(data), 2):
        if data[at] != _STATUS_TAG or data[at + 1] > 127:
            return 0
        status = data[at + 1]
    return status
