"""Flash crowds: many requests that begin in one instant, again and again."""
