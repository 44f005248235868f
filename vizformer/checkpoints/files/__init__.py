"""Files that somebody else made, read with suspicion: folders, weights, downloads from a hub."""
