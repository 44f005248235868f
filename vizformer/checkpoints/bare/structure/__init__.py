"""Models written by hand, read by role: shapes, places in the tree of modules and words in names say what a tensor is."""
