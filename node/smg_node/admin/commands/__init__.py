"""Commands of `smg-admin`, one module each."""
