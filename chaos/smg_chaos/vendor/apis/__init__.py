"""APIs of vendors: each reads and checks requests, and writes answers whole and as events."""
