// The language of the page: screen readers and the choice between Han glyphs depend on it.
document.documentElement.lang = document.currentScript.dataset.tag;
