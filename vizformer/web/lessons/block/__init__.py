"""The laboratories of the lesson Add & norm, feed-forward."""
