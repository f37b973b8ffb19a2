"""Discovery definitions: sources of workers that operators define for the whole cluster, checked before they are kept."""
