"""`smg-chaos history`: what a response that is remembered costs, store by store."""
