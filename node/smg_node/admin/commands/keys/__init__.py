"""Key commands, `smg-admin keys`: API keys of the cluster, made, imported, listed and revoked."""
