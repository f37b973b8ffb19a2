"""Our own words on the wire between nodes; engine contracts come from `smg-grpc-proto`."""
