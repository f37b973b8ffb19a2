"""Sources of settings: YAML file, environment, command line, and the loader that merges them."""
