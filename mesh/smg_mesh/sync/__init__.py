"""Who still lacks what: conversations between two nodes, without any I/O."""
