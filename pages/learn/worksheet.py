"""Worksheet: calculations for paper with the tokens of the sentence, versions with other numbers, and the key."""

from vizformer.web.tools.worksheet.sheet import sheet
from vizformer.web.widgets.model_input import subject_box


def page() -> None:
    subject = subject_box()
    if subject is not None:
        sheet(subject)


page()
