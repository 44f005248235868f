// What Streamlit's page leaves open for keyboards and screen readers, mended where it appears.
(() => {
  if (window.vizformerAccessible) return;
  window.vizformerAccessible = true;
  // The keyboard goes past the bar, to the page.
  addEventListener("click", (event) => {
    const page = document.querySelector(".st-key-page-body");
    if (!(event.target instanceof Element) || !event.target.closest(".vf-skip") || !page) return;
    event.preventDefault();
    page.setAttribute("tabindex", "-1");
    page.focus();
  }, true);
  // A formula that is wider than its place scrolls: with the keyboard too.
  const reachable = () => {
    for (const formula of document.querySelectorAll(".katex-display")) {
      if (formula.scrollWidth > formula.clientWidth) formula.setAttribute("tabindex", "0");
      else formula.removeAttribute("tabindex");
    }
  };
  let asked = false;
  const look = () => {
    asked = false;
    reachable();
  };
  const later = () => {
    if (asked) return;
    asked = true;
    setTimeout(look, 300);
  };
  new MutationObserver(later).observe(document.body, { childList: true, subtree: true });
  addEventListener("resize", later);
  look();
})();
