"""Owning: the owner's side of a limit: minting, giving by demand, and checking the books."""
