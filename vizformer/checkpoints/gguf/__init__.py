"""Files of llama.cpp (GGUF): everything in one file, the numbers often in a few bits each."""
