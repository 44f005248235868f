// What Streamlit's page leaves open for keyboards and screen readers, mended where it appears.
(() => {
  if (window.vizformerAccessible) return;
  window.vizformerAccessible = true;
  // The list of pages has boxes between the list and its items, which is no list to a screen reader: links will do.
  const noLists = () => {
    for (const list of document.querySelectorAll("[data-testid=stSidebarNavItems]:not([role])")) list.setAttribute("role", "none");
    for (const item of document.querySelectorAll("[data-testid=stSidebarNavItems] li:not([role])")) item.setAttribute("role", "none");
  };
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
    noLists();
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
