"""Schema of the SQL store: tables, columns and types, and the names that a database has for them."""
