"""Tool runs of Chat: tools on this node's side, as bodies ask for them and as answers tell of them."""
