"""The Streamlit glue: the frame, the state that lives in the link, languages and error display.

Nothing here imports torch at the top: the frame is on the screen before torch has loaded.
"""
