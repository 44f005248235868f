"""The page Head report: what every head of a model does, measured on many texts."""
