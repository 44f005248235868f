"""The laboratories of the lesson "The map"."""
