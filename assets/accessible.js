// What Streamlit's page leaves open for keyboards and screen readers, mended where it appears.
(() => {
  if (window.vizformerAccessible) return;
  window.vizformerAccessible = true;
  // The keyboard goes past the bar, to the page.
  addEventListener("click", (event) => {
    const page = document.querySelector(".st-key-page-body");
    if (!(event.target instanceof Element) || !event.target.closest("[data-testid=stSkipToContent]") || !page) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    page.setAttribute("tabindex", "-1");
    page.focus();
  }, true);
  // A tap on a link leaves a box for letters and goes to the page in one: what was typed is told to the server first, which
  // would otherwise come back to the page where it was typed. A box tells it a moment after it was left, a busy one later; a
  // finger or a button stays down for some 100 ms.
  const idle = window.requestIdleCallback ?? ((then) => setTimeout(then, 100)); // (Safari has none)
  // Where the page was drawn anew meanwhile, the link is another element: the old one, outside of the page, would load the
  // address in a new session, which knows nothing of what was typed.
  const follow = (link, tries) => {
    const address = link.getAttribute("href");
    const links = [...document.querySelectorAll("[data-testid=stPageLink] a")];
    const found = link.isConnected ? link : links.find((one) => one.getAttribute("href") === address);
    if (found) found.click();
    else if (tries) setTimeout(() => follow(link, tries - 1), 100);
  };
  let left = 0;
  addEventListener("focusout", (event) => {
    if (event.target instanceof Element && event.target.matches("input, textarea")) left = performance.now();
  }, true);
  addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest("[data-testid=stPageLink] a");
    if (!link || !event.isTrusted) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) { // Streamlit would go there in this window
      const own = link.getAttribute("href"), there = new URL(own || ".", location.href); // ("" is the first page)
      event.stopImmediatePropagation();
      there.search ||= location.search;
      link.href = there;
      setTimeout(() => link.setAttribute("href", own));
      return;
    }
    if (performance.now() - left > 3000) return; // (a busy browser takes that long from the one to the other)
    event.preventDefault();
    event.stopImmediatePropagation();
    setTimeout(() => idle(() => follow(link, 20), { timeout: 900 }), 100);
  }, true);
  // A stroke begins a search, from anywhere but a box for letters.
  addEventListener("keydown", (event) => {
    const inside = event.composedPath()[0], box = document.querySelector(".st-key-search input");
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || !box) return;
    if (inside instanceof Element && inside.matches("input, textarea, [contenteditable=true]")) return;
    event.preventDefault();
    if (!box.checkVisibility()) document.querySelector(".st-key-bar-fold input")?.click();
    box.focus();
  });
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
