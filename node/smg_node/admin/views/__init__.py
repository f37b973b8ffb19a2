"""Views of `smg-admin`: tables and texts made of the admin API's answers."""
