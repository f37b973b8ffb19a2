"""`smg-admin top`: the whole cluster as it works, seen through any of its nodes."""
