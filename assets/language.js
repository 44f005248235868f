// The language of the page: screen readers and the choice between Han glyphs depend on it.  And Streamlit's link past the bar,
// the first stop of the keyboard, in that language (where it leads: accessible.js).
(() => {
  const { tag, skip } = document.currentScript.dataset;
  document.documentElement.lang = tag;
  const link = document.querySelector("[data-testid=stSkipToContent]");
  if (link) link.textContent = skip;
})();
