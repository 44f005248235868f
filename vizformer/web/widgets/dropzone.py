"""The texts of a box for files, in the reader's language."""

import json


def style(label: str) -> str:
    """Streamlit writes its own words into `st.file_uploader`, in English, and rounds half a gigabyte up to one."""
    place, words = '[data-testid="stFileUploaderDropzone"]', json.dumps(label, ensure_ascii=False)
    return (
        f'<style>{place} [data-testid="stFileUploaderDropzoneInstructions"] {{ display: none }}'
        f"{place} > span button p {{ font-size: 0 }}"
        f"{place} > span button p::after {{ content: {words}; font-size: 0.875rem }}</style>"
    )
