"""How nodes agree: membership, shared state and limits of a cluster of equal peers."""
