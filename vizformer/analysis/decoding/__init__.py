"""What a decoder makes of a given text, of several ways of choosing, and of another memory."""
