"""Replicated state in a simulated cluster: what drives it, what is done to it, and who watches."""
