"""Named weather: one thing befalls a cluster, and it is measured what becomes of it."""
