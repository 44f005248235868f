// The next lesson begins at its top, also where the page before is still there.  The part of a lesson that comes next begins
// where the list of parts is, from which the keyboard goes on.
(() => {
  const { lesson, part } = document.currentScript.dataset;
  const before = window.vizformerPart;
  window.vizformerPart = { lesson, part };
  const list = document.querySelector("[class*='st-key-lesson-part-']");
  if (before && before.lesson !== lesson) document.querySelector("[data-testid=stMain]")?.scrollTo({ top: 0 });
  if (before?.lesson !== lesson || before.part === part || !list || list.getBoundingClientRect().top >= 0) return;
  list.scrollIntoView({ block: "start" });
  const pressed = document.activeElement;
  if (pressed !== document.body && !pressed?.closest(".st-key-lesson-next, .st-key-lesson-back")) return;
  for (let tries = 0; tries < 2; tries += 1) // the list hands the first one on to where the keyboard was in it before
    list.querySelectorAll("[role=radio]")[Number(part)]?.focus({ preventScroll: true });
})();
