"""SQL store: history in tables: SQLite, PostgreSQL and Oracle over one set of statements."""
