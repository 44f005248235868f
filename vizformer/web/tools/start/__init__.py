"""The page Start: one pass of the typed sentence through the model, and three doors."""
