"""Work in processes of their own: the queue of the server that starts them, and what such a process looks at."""
