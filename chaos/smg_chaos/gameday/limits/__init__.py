"""Live limits: a cluster under ten times what it may admit, hurt meanwhile, and counted at its engines."""
