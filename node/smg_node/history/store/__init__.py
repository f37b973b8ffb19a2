"""Store: history store with circuit breaker, operator hooks, local spool and retention."""
