"""Tables: last-writer-wins tables that all nodes write, in shards."""
