"""Classes: a teacher's pages, followed by students; nothing of anybody is kept (no Streamlit in here)."""
