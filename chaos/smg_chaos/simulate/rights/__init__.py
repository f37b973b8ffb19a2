"""Rights in a simulated cluster: who asks for what, how it is spent, and whether the limits hold."""
