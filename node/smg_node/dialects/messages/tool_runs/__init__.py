"""Tool runs of Messages: tools on this node's side, as requests ask for them, as answers show and as clients return them."""
