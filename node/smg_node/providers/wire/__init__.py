"""What goes on the wire to vendors, byte for byte: URLs, and the members of JSON objects."""
