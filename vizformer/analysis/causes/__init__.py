"""What an answer depends on: parts, tokens and neurons taken out or replaced, patches between two prompts."""
