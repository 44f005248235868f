"""The page Worksheet."""
