"""Built-in tools of a loop: those that servers do the work of, and the search among tools, which this node does itself."""
