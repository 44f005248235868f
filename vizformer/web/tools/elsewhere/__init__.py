"""What the page Attention from elsewhere shows."""
