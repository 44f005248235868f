"""The laboratories of the lesson Find the error."""
