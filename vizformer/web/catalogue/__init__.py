"""Where models come from, and what is computed with them once for everybody."""
