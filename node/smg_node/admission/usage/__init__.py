"""Usage of tenants, keys, models and providers: counted here, by the hour."""
