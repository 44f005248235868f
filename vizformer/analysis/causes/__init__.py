"""What an answer depends on: parts and tokens taken out or replaced, patches between two prompts."""
