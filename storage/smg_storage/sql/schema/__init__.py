"""Schema of the SQL store: tables, columns and types, and their names in a database."""
