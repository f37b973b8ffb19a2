"""Rights to spend a limit that belongs to the whole cluster: moved from node to node, never copied. Pure."""
