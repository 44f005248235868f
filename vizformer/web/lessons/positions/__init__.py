"""The laboratories of the lesson Positions."""
