"""Published tables of prices: read from their files, matched with providers' models, compared with what is set."""
