"""Search: which tools a prompt leaves out, and how models find them."""
