"""Discovery commands, `smg-admin discovery`."""
