"""History gameday: the store and a node die and return; nothing acknowledged is lost, nothing is
there twice.
"""
