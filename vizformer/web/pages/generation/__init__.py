"""The page Generation."""
