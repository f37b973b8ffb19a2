"""`smg-chaos bench`: what a gateway costs and how long it keeps people waiting, beside its peers."""
