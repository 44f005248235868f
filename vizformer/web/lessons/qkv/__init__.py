"""The laboratories of the lesson Query, key, value."""
