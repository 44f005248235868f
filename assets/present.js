// Keys of a page that is presented: those of a clicker (PageDown, PageUp, full stop), arrows, and Esc, press its buttons.
(() => {
  if (window.vizformerPresents) return;
  window.vizformerPresents = true;
  const OWN_ARROWS = "input, textarea, select, [contenteditable=true], [tabindex]:not(button, a, [tabindex='-1']), [role=slider], [role=radio], [role=tab], [role=combobox], summary";
  const OPEN = "[data-testid=stPopoverBody], [role=dialog], [role=listbox], [role=menu]";
  const STEPS = { PageDown: "slide-next", PageUp: "slide-back", ArrowRight: "slide-next", ArrowLeft: "slide-back", Escape: "present-end" };
  const dark = () => document.querySelector(".vf-dark-screen");
  addEventListener("keydown", (event) => {
    if (!document.querySelector(".st-key-present-end") || event.altKey || event.ctrlKey || event.metaKey) return;
    const inside = event.composedPath()[0];
    const typing = inside instanceof Element && inside.matches("input:not([type=radio], [type=checkbox], [type=range]), textarea, [contenteditable=true]");
    if ((event.key === "." || event.key === "b") && !typing) {
      if (dark()) dark().remove();
      else document.body.append(Object.assign(document.createElement("div"), { className: "vf-dark-screen" }));
      return;
    }
    if (dark()) dark().remove();
    const step = STEPS[event.key];
    if (!step || document.querySelector(OPEN)) return;
    if (event.key.startsWith("Arrow") && inside instanceof Element && inside.matches(OWN_ARROWS)) return;
    if (event.key === "Escape" && typing) return;
    const button = document.querySelector(`.st-key-${step} :is(button:not(:disabled), a)`);
    if (!button) return;
    event.preventDefault();
    button.click();
  }, true);
})();
