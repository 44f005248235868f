"""English typed into a model that reads Chinese: said on the page, in words, and not as an error."""

import pytest

PAGE = "pages/explore/attention.py"


@pytest.mark.parametrize(("locale", "words"), [("en-US", "This model reads Chinese"), ("zh-CN", "这个模型读中文")])
def test_english_typed_into_the_translator_is_noticed(open_app, locale, words):
    app = open_app(PAGE, locale=locale, text="I have a cat.")
    assert [notice for notice in app.info if notice.value.startswith(words)]
    assert not app.error
    assert not app.exception


@pytest.mark.parametrize("link", [{}, {"text": "我爱Python。"}, {"text": "I have a cat.", "model": "stories"}])
def test_what_a_model_reads_is_not_remarked_upon(open_app, link):
    assert not [notice for notice in open_app(PAGE, **link).info if "This model reads" in notice.value]
