"""Upgrade: the answer 101, and the socket that the connection is from then on."""

from typing import Final

from smg_node.http.message.http_request import HttpRequest
from smg_node.http.sockets.handshake import accept_key
from smg_node.http.sockets.offered_key import PROTOCOLS, offered_protocols
from smg_node.http.sockets.web_socket import SocketRules, WebSocket

_CHOSEN: Final = "realtime"
"""The only subprotocol there is: a browser that offers some fails unless one is chosen, and a key never is."""


def accept(request: HttpRequest, rules: SocketRules) -> WebSocket:
    """Answer 101 and return the socket; the connection speaks nothing else from now on.

    `check_handshake` comes first. ConnectionError if the client is gone.
    """
    wire, line = request.wire, request.line
    key = request.headers["sec-websocket-key"].strip()
    headers = {
        "sec-websocket-accept": accept_key(key),
        "x-request-id": request.request_id,
        "request-id": request.request_id,
    }
    if _CHOSEN in offered_protocols(request.head):
        headers[PROTOCOLS] = _CHOSEN
    head = wire.heads.head(101, "upgrade: websocket\r\nconnection: Upgrade", headers)
    transport = line.transport
    if transport is None or transport.is_closing():
        raise ConnectionResetError("the client is gone")
    wire.begun = True
    wire.keep_alive = False
    line.sent_bytes += len(head)
    transport.write(head)
    socket = WebSocket(line, transport, rules)
    socket.open()
    return socket
