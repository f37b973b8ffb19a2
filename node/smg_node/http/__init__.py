"""HTTP: the node's public surface: route table, servers, middleware, routes, ports to the node."""
