"""Network: the UDP socket, the listening sockets, and datagrams beside the gossip."""
