"""The `smg-admin` command: the operator's view over the admin API."""
