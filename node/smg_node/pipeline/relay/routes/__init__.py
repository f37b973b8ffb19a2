"""Routes over models at vendors: sides of splits, openings of conversations, expected prices of one request."""
