"""The laboratories of the lesson Training."""
