"""The page Fill in the blank."""
