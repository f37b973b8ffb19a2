"""Ways of routes: how one of several targets is chosen, splits, shadows."""
