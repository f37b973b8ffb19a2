"""Top: `smg-admin top`, a live screen of the whole cluster, seen through any of its nodes."""
