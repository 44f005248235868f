"""The page What each head does: what every head of a model does, measured on many texts."""
