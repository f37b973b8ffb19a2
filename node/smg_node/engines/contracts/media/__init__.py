"""Media in contracts: what engines say of pictures, what is checked of them, and their fields in requests; pure."""
