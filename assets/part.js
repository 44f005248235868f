// The next lesson begins at its top, also where the page before is still there.  The part of a lesson that comes next begins
// where the list of parts is, from which the keyboard goes on.
(() => {
  const { lesson, part } = document.currentScript.dataset;
  const before = window.vizformerPart;
  window.vizformerPart = { lesson, part };
  const list = document.querySelector("[class*='st-key-lesson-part-']");
  const tab = () => document.querySelectorAll("[class*='st-key-lesson-part-'] [role=radio]")[Number(part)];
  const reveal = (tries) => { // on a phone, where the list is one line
    const around = tab()?.parentElement;
    if (around?.clientWidth) around.scrollLeft += tab().getBoundingClientRect().left - around.getBoundingClientRect().left - 40;
    else if (tries) requestAnimationFrame(() => reveal(tries - 1));
  };
  reveal(120);
  if (before && before.lesson !== lesson) document.querySelector("[data-testid=stMain]")?.scrollTo({ top: 0 });
  if (before?.lesson !== lesson || before.part === part || !list || list.getBoundingClientRect().top >= 0) return;
  list.scrollIntoView({ block: "start" });
  const pressed = document.activeElement;
  if (pressed !== document.body && !pressed?.closest(".st-key-lesson-next, .st-key-lesson-back")) return;
  for (let tries = 0; tries < 2; tries += 1) // the list hands the first one on to where the keyboard was in it before
    tab()?.focus({ preventScroll: true });
})();
