"""Video: which frames of a clip a model sees, at which size and time, and their patches; pure but for `decoding`."""
