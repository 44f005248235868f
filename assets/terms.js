// A term of the glossary in running text is a link to "#term-<key>" (web/words/terms.py): to whoever points at it, taps it or
// comes to it with the keyboard, its sentence is said. All sentences of a language are fetched once, with the first one.
(() => {
  const { address } = document.currentScript.dataset;
  const box = document.createElement("div");
  box.id = "vf-term";
  box.setAttribute("role", "tooltip");
  box.popover = "manual";
  document.body.append(box);
  const languages = {};
  const sentences = () => {
    const tag = document.documentElement.lang;
    languages[tag] ??= fetch(`${address}${tag}.json`).then((answer) => answer.json()).catch(() => {
      delete languages[tag]; // the next one asks again
      return {};
    });
    return languages[tag];
  };
  let shown = null, leaving = 0;
  const termOf = (event) => event.composedPath().find((one) => one instanceof Element && one.matches("a[href^='#term-']"));
  const hide = () => {
    shown = null;
    box.hidePopover();
  };
  const place = () => {
    if (!shown) return;
    if (!shown.isConnected) return hide();
    const at = shown.getClientRects()[0] ?? shown.getBoundingClientRect(), own = box.getBoundingClientRect();
    box.style.left = `${Math.max(8, Math.min(at.left, document.documentElement.clientWidth - own.width - 8))}px`;
    box.style.top = `${at.bottom + own.height + 8 < innerHeight ? at.bottom + 4 : at.top - own.height - 4}px`;
  };
  const show = async (term) => {
    clearTimeout(leaving);
    if (shown === term) return;
    shown = term;
    const found = (await sentences())[term.getAttribute("href").slice(6)];
    if (!found || shown !== term) return;
    const name = document.createElement("strong");
    name.textContent = found[0];
    box.replaceChildren(name, ` ${found[1]}`);
    term.setAttribute("aria-description", found[1]);
    box.style.colorScheme = getComputedStyle(term).colorScheme;
    box.showPopover();
    place();
  };
  addEventListener("pointerover", (event) => {
    const term = termOf(event);
    if (term) show(term);
    else if (event.composedPath().includes(box)) clearTimeout(leaving);
    else if (shown && event.pointerType === "mouse") {
      clearTimeout(leaving);
      leaving = setTimeout(hide, 300); // the way from the term to its sentence
    }
  });
  addEventListener("focusin", (event) => {
    const term = termOf(event);
    if (term) show(term);
    else if (shown) hide();
  });
  addEventListener("click", (event) => {
    const term = termOf(event);
    if (term) {
      event.preventDefault();
      event.stopImmediatePropagation();
      show(term);
    } else if (shown && !event.composedPath().includes(box)) hide();
  }, true);
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && shown) hide();
  });
  addEventListener("scroll", place, { capture: true, passive: true });
  addEventListener("resize", place);
})();
