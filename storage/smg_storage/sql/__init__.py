"""Histories in tables: SQLite, PostgreSQL and Oracle over one set of statements."""
