"""Request schemas for `/openapi.json`: bodies and queries, by the tables of the readers that read them."""
