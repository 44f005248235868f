"""The Streamlit glue: the frame, the state that lives in the link, languages and error display.

Nothing that the frame is made of imports torch at the top: it is on the screen before torch has loaded.
"""
