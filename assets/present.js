// Keys of a page that is presented: those of a clicker (PageDown, PageUp, full stop), arrows, and Esc.  They go through
// the screens of a laboratory and what is higher than one, then press the page's buttons.  S opens the notes in a window
// that goes where this one goes.
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

  // --- the screens of a laboratory: its settings and its first picture, then what lies below them, a press each ---

  const CHART = "[class*=st-key-chart-] > :last-child"; // there before Plotly is
  const PICTURES = "[class*=st-key-chart-], [data-testid^=stBidiComponent], [data-testid=stDataFrame], [data-testid=stImage], table, [data-testid=stHtml] svg, .katex-display, pre";
  const CONTROLS = "[data-testid=stSlider], [data-testid=stSelectbox], [data-testid=stButtonGroup], [data-testid=stCheckbox], [data-testid=stNumberInput], [data-testid=stTextInput], [data-testid=stPopover]";
  const GAP = 12; // px that stay free at the foot, and between two blocks
  const FOOT = 44; // px, which what stands around the blocks takes below them
  const DRAWN = 80; // px, from which text of our own making is a picture
  const LEAST = 0.4; // of its size, to which something is made smaller to fit; what is still higher scrolls
  const WHOLE = "[class*=st-key-chart-], [class*=st-key-takeaway-], [class*=st-key-ask-]"; // containers that are not divided
  const PLACES = [".st-key-lesson-laboratory", ".st-key-slide-asked"];
  const rules = document.head.appendChild(document.createElement("style"));
  const drawn = () => document.querySelector(".st-key-slide-steps") && document.querySelector(PLACES[0]);
  let laboratory = null, screen = 0, screens = 1, laidOut = "";
  let slack = 0; // px that screens of several blocks leave free: what stands around these took more room than was thought
  const measures = () => {
    const one = sheet();
    return one && laboratory ? [one.scrollHeight, one.clientHeight, laboratory.getBoundingClientRect().top + one.scrollTop].join() : "";
  };

  const holds = ({ one }, what) => [...one.querySelectorAll(what)].some((part) => !part.closest("[data-testid=stExpander]"));
  // What is drawn there, from above: each with a selector of it, its top and bottom as if all stood below each other.
  const blocks = (places = PLACES) => places.flatMap((place) => [...document.querySelector(place)?.children ?? []].flatMap((one, index) => {
    const { top, bottom } = one.getBoundingClientRect(), at = `${place} > :nth-child(${index + 1})`, inside = one.firstElementChild;
    if (inside?.matches(`[data-testid=stVerticalBlock]:not(${WHOLE})`) && inside.children.length > 1) return blocks([`${at} > :first-child`]);
    const chart = Math.max(0, ...[...one.querySelectorAll(CHART)].map((of) => of.offsetHeight));
    return [{ one, at, top, bottom, height: bottom - top, chart }];
  })).filter(({ height }) => height > 0);

  // A block in a height: a chart is drawn so high, anything else is made smaller.
  const fitted = ({ at, height, chart }, room, fill) => {
    if (chart && (fill || height > room)) {
      const high = Math.max(150, Math.floor(chart - height + room));
      return `${at} ${CHART} { flex: none !important; height: ${high}px !important; }
        ${at} .stPlotlyChart { height: ${high}px !important; overflow: hidden; }`;
    }
    if (height <= room) return "";
    const scale = Math.max(LEAST, room / height); // (not `zoom`: what is drawn would be laid out anew, at another height)
    return `${at} { height: ${Math.floor(scale * height)}px !important; overflow: hidden; }
      ${at} > * { transform: scale(${scale}); transform-origin: 0 0; }`;
  };

  function layOut() {
    const one = sheet(), found = drawn();
    if (found !== laboratory) [laboratory, screen, slack] = [found, 0, 0];
    if (!found || !one || own()) { rules.textContent = laidOut = ""; screens = 1; return; }
    const before = rules.textContent, { scrollTop } = one;
    rules.textContent = "";
    const all = blocks();
    if (!all.length) return;
    const room = one.getBoundingClientRect().bottom - (all[0].top + scrollTop) - GAP;
    const first = Math.max(0, all.findIndex((block) => holds(block, PICTURES) || (block.height > DRAWN && holds(block, "[data-testid=stHtml]"))));
    const head = all.slice(0, first), kept = head.filter((block) => holds(block, CONTROLS));
    const above = all[first].top - all[0].top;
    const bar = above - head.filter((block) => !kept.includes(block)).reduce((sum, { height }) => sum + height + GAP, 0);
    const shown = [[...head, all[first]]];
    let left = 0;
    for (const block of all.slice(first + 1)) {
      if (block.height + GAP > left) { shown.push([...kept]); left = room - bar - FOOT - slack; }
      shown.at(-1).push(block);
      left -= block.height + GAP;
    }
    screens = shown.length;
    screen = Math.min(screen, screens - 1);
    const here = new Set(shown[screen]);
    const text = all.map((block) => here.has(block) ? "" : `${block.at} { position: absolute !important; visibility: hidden; height: 0 !important; overflow: hidden; }`);
    if (screens > 1) text.push(`.st-key-slide-steps [data-testid=stCaptionContainer] p::after { content: " · ${screen + 1}/${screens}"; }`);
    let over = 0;
    const filled = all.filter((block) => here.has(block) && !head.includes(block)); // the highest of them gives way
    const most = screen ? Math.min(room - bar, Math.max(...filled.map(({ height }) => height))) : room - above;
    for (let tries = 0; tries < 8; tries += 1) { // what stands around the blocks takes a little room too
      const fits = filled.map((block) => fitted(block, most - over, !screen));
      rules.textContent = [...text, ...fits].filter(Boolean).join("\n");
      if (one.scrollHeight <= one.clientHeight) break;
      over += one.scrollHeight - one.clientHeight;
    }
    const more = one.scrollHeight - one.clientHeight;
    if (more > 0 && slack < room / 2 && shown[screen].length > kept.length + 1) {
      slack += more;
      layOut();
      return;
    }
    one.scrollTop = before === rules.textContent ? scrollTop : 0;
    laidOut = measures();
  }

  let asked = false;
  const soon = () => {
    if (!asked) requestAnimationFrame(() => { asked = false; watch(); });
    asked = true;
  };
  const resized = new ResizeObserver(() => layOut());
  const moves = new MutationObserver((changes) => { // (a chart that is pointed at changes all the time)
    if (changes.some(({ target }) => !target.closest(".stPlotlyChart"))) soon();
  });
  function watch() {
    resized.disconnect();
    moves.disconnect();
    const one = drawn() && sheet();
    if (one) {
      resized.observe(one);
      moves.observe(one, { childList: true, subtree: true });
      for (const { firstElementChild } of document.querySelectorAll(PLACES.map((place) => `${place} > *`).join())) {
        if (firstElementChild) resized.observe(firstElementChild);
      }
    }
    layOut();
  }
  const turns = (direction) => {
    if (screen + direction < 0 || screen + direction >= screens) return false;
    screen += direction;
    layOut();
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
    if (press(step)) event.preventDefault();
  }, true);

  const WAYS = { "slide-next": 1, "slide-back": -1 };
  const PRESSED = ":is(button:not(:disabled), a)";
  const further = (way) => scrolls(way) || turns(way);
  const steps = () => document.querySelector(".st-key-slide-steps")?.textContent;
  // Until the next slide is drawn, the buttons are those of the slide before, which do nothing new: a press waits for it.
  const LONGEST = 50; // looks
  const waiting = [];
  let left = "", looks = 0;
  const leave = () => { [left, looks] = [steps() ?? "", 0]; };
  const isLeaving = () => left && looks < LONGEST && [undefined, left].includes(steps());

  // A screen further, or a button is pressed; falsy where there is neither.
  function press(step) {
    if (!WAYS[step]) left = "";
    if (isLeaving()) return waiting.push(step);
    if (WAYS[step] && !own() && further(WAYS[step])) return true; // of the notes, a press is a step
    const button = document.querySelector(`.st-key-${step} ${PRESSED}`);
    button?.click();
    if (button) sheet()?.scrollTo({ top: 0 });
    return button;
  }

  addEventListener("click", (event) => {
    if (!(event.target instanceof Element)) return;
    const step = Object.keys(WAYS).find((one) => event.target.closest(`.st-key-${one} ${PRESSED}`));
    if (step && event.isTrusted && (isLeaving() ? waiting.push(step) : !own() && further(WAYS[step]))) {
      event.stopPropagation();
      event.preventDefault();
    } else if (step) leave();
    if (!event.target.closest(".st-key-present-notes")) return;
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
    if (drawn() !== laboratory || laidOut !== measures()) watch();
    looks += 1;
    if (waiting.length && !isLeaving()) press(waiting.shift());
    if (!isIdle() || !isOn()) return;
    if (wanted && wanted !== place() && tries < RESTS) {
      if (!tries) leave();
      tries += 1;
      history.pushState(null, "", addressOf(wanted, own()));
      dispatchEvent(new PopStateEvent("popstate", { state: null }));
      last = wanted;
    } else if (wanted) {
      if (!isLeaving()) rests += 1;
      if (rests > RESTS) wanted = "";
    } else if (place() && place() !== last) {
      last = place();
      channel.postMessage(last);
    }
  }, 200);
})();
