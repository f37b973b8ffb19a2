"""Headers of encoded pictures: format, size and orientation, found in bounded time before anything is decoded."""
