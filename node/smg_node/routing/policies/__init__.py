"""The built-in policies, one file each."""
