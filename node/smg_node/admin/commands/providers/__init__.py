"""Commands about models at vendors: providers, routes, and what a request would lose on each target."""
