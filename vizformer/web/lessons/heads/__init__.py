"""The laboratories of the lesson Many heads."""
