"""Why does a head look there? A score taken apart, and what the scores are made for."""
