"""What goes wrong on a game day, one kind of harm to a file: how it begins, how it ends, and when it is over."""
