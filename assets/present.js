// Keys of a page that is presented: those of a clicker (PageDown, PageUp, full stop), arrows, and Esc.  They scroll what is
// higher than the screen, then press the page's buttons.  S opens the notes in a window that goes where this one goes.
(() => {
  if (window.vizformerPresents) return;
  window.vizformerPresents = true;
  const OWN_ARROWS = "input, textarea, select, [contenteditable=true], [tabindex]:not(button, a, [tabindex='-1']), [role=slider], [role=radio], [role=tab], [role=combobox], summary";
  const OPEN = "[data-testid=stPopoverBody], [role=dialog], [role=listbox], [role=menu]";
  const STEPS = { PageDown: "slide-next", PageUp: "slide-back", ArrowRight: "slide-next", ArrowLeft: "slide-back", Escape: "present-end" };
  const NOTES = "notes-";
  const isOn = () => document.querySelector(".st-key-present-end, .st-key-slide-steps");
  const dark = () => document.querySelector(".vf-dark-screen");
  const sheet = () => document.querySelector(".st-key-page-body")?.parentElement;

  // What is higher than the screen: a screen further on or back, where there is more of it.
  const scrolls = (direction) => {
    const one = sheet();
    if (!one) return false;
    const left = direction > 0 ? one.scrollHeight - one.clientHeight - one.scrollTop : one.scrollTop;
    if (left < 2) return false;
    one.scrollBy({ top: direction * 0.85 * one.clientHeight });
    return true;
  };

  addEventListener("keydown", (event) => {
    if (!isOn() || event.altKey || event.ctrlKey || event.metaKey) return;
    const inside = event.composedPath()[0];
    const typing = inside instanceof Element && inside.matches("input:not([type=radio], [type=checkbox], [type=range]), textarea, [contenteditable=true]");
    if ((event.key === "." || event.key === "b") && !typing) {
      if (dark()) dark().remove();
      else document.body.append(Object.assign(document.createElement("div"), { className: "vf-dark-screen" }));
      return;
    }
    if (dark()) dark().remove();
    if (event.key === "s" && !typing) openNotes();
    const step = STEPS[event.key];
    if (!step || document.querySelector(OPEN)) return;
    if (event.key.startsWith("Arrow") && inside instanceof Element && inside.matches(OWN_ARROWS)) return;
    if (event.key === "Escape" && typing) return;
    const moved = step !== "present-end" && !own() && scrolls(step === "slide-next" ? 1 : -1); // of the notes, a press is a step
    const button = document.querySelector(`.st-key-${step} :is(button:not(:disabled), a)`);
    if (!moved && !button) return;
    event.preventDefault();
    if (moved) return;
    button.click();
    sheet()?.scrollTo({ top: 0 });
  }, true);

  addEventListener("click", (event) => {
    if (!(event.target instanceof Element) || !event.target.closest(".st-key-present-notes")) return;
    event.stopPropagation();
    event.preventDefault();
    openNotes();
  }, true);

  // --- the window of the notes ---

  sessionStorage.vizformerTalk ??= crypto.randomUUID?.() ?? String(Math.random()); // a window that is opened has it too
  const channel = new BroadcastChannel(`vizformer ${sessionStorage.vizformerTalk}`);
  const isIdle = () => document.querySelector("[data-testid=stApp]")?.dataset.testScriptState === "notRunning";
  // Where the window is: the address, without what is its own.
  const place = () => {
    const address = new URL(location.href);
    const slide = address.searchParams.get("slide");
    if (!slide || slide === "off") return "";
    address.searchParams.set("slide", slide.replace(NOTES, ""));
    address.searchParams.delete("room");
    address.searchParams.sort();
    return address.pathname + address.search;
  };
  const own = () => (new URL(location.href).searchParams.get("slide") ?? "").startsWith(NOTES) ? NOTES : "";
  const addressOf = (there, prefix) => {
    const address = new URL(there, location.href);
    address.searchParams.set("slide", prefix + address.searchParams.get("slide"));
    return address;
  };
  const RESTS = 10; // looks at a page at rest, until it is believed to stay where it was led
  let last = place();
  let wanted = "", rests = 0, tries = 0;

  function openNotes() {
    if (!own() && place()) open(addressOf(place(), NOTES), "vizformer-notes");
  }

  channel.addEventListener("message", ({ data }) => { wanted = String(data); rests = tries = 0; });
  for (const kind of ["pointerdown", "keydown"]) addEventListener(kind, () => { wanted = ""; }, true); // led from here
  // While a run goes on the address may still be that of the run before; and a run that began before this window was led
  // writes its own address over the one that was wanted: it is led again, and leads nobody back.
  setInterval(() => {
    if (!isIdle() || !isOn()) return;
    if (wanted && wanted !== place() && tries < RESTS) {
      tries += 1;
      history.pushState(null, "", addressOf(wanted, own()));
      dispatchEvent(new PopStateEvent("popstate", { state: null }));
      last = wanted;
    } else if (wanted) {
      rests += 1;
      if (rests > RESTS) wanted = "";
    } else if (place() && place() !== last) {
      last = place();
      channel.postMessage(last);
    }
  }, 200);
})();
