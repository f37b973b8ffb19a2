"""Key files: keys of other gateways as these write them, read into rows of digests."""
