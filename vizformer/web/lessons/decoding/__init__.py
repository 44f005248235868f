"""The laboratories of the lesson Writing a text."""
