(() => {
  if (window.look) return;
  const look = window.look = { live: null, shift: 0, rest: 0, before: new WeakMap() };
  let [painted, covered] = [new Map(), null];  // when each picture was, and the first one that stood in the page at first
  const MOST = 50;  // ms of rest that one frame can count for
  let [begun, last, sum] = [0, 0, 0];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      look.rest = 0;
      if (entry.hadRecentInput) continue;
      if (entry.startTime - last > 1000 || entry.startTime - begun > 5000) [begun, sum] = [entry.startTime, 0];
      [last, sum] = [entry.startTime, sum + entry.value];
      look.shift = Math.max(look.shift, sum);
    }
  }).observe({ type: "layout-shift", buffered: true });

  const KINDS = "canvas, svg, img, table, .js-plotly-plot, "
    + ".vf-tokens, .vf-cells, .vf-cuts, .vf-symbols, .vf-place, .vf-overview, .vf-tree, .vf-reading, .vf-running, .vf-choice, .vf-stations-picture, .vf-whole-lanes";
  const CONTROLS = "input:not([type=hidden]), textarea, select, [role=radiogroup], "
    + "[data-testid=stSlider], [data-testid=stSelectbox]";
  const NONE = ".katex, [class*='st-key-ask-'], [data-testid=stSkeleton]";
  const within = function* (root, kinds) {
    for (const one of root.querySelectorAll("*")) {
      if (one.matches(kinds)) yield one;
      if (one.shadowRoot) yield* within(one.shadowRoot, kinds);
    }
  };
  const host = (one) => one.getRootNode().host ?? one;
  const place = (one) => {
    const main = document.querySelector("[data-testid=stMain]");
    return one.getBoundingClientRect().top + (main?.contains(host(one)) ? main.scrollTop : scrollY);
  };
  const small = new OffscreenCanvas(16, 16).getContext("2d", { willReadFrequently: true });
  const pixels = (canvas) => {
    small.clearRect(0, 0, 16, 16);
    if (!canvas.width || !canvas.height) return "";
    small.drawImage(canvas, 0, 0, 16, 16);
    const { data } = small.getImageData(0, 0, 16, 16);
    return data.some((value, index) => index > 3 && value !== data[index - 4]) ? data.join() : "";
  };
  // What is on a picture; nothing while it is empty.
  const content = (one) => {
    if (one instanceof HTMLCanvasElement) return pixels(one);
    if (one instanceof HTMLImageElement) return one.complete && one.naturalWidth ? one.src : "";
    if (one instanceof SVGElement) return one.querySelector("path, rect, circle, line, text, image") ? one.innerHTML : "";
    return one.matches(".js-plotly-plot") ? one.querySelector(".main-svg path, .main-svg image, canvas") ? one.innerHTML : ""
      : one.textContent.trim();
  };
  const shown = (one) => {
    const { width, height, right } = one.getBoundingClientRect();
    if (width < 90 || height < 40 || right <= 0 || host(one).closest(NONE)) return false;  // (a table of two columns of digits has 96)
    return one.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  };
  const bodies = () => document.querySelectorAll(".st-key-page-body, #first-picture");
  const candidates = () => [...bodies()]
    .flatMap((body) => [...within(body.shadowRoot ?? body, KINDS)].filter(shown).map((one) => [one, body]));
  look.pictures = () => candidates().map(([one]) => [one, content(one)]).filter(([, what]) => what);
  look.first = () => look.pictures().map(([one]) => one).filter((one) => !one.matches(".vf-stand-in")).sort((a, b) => place(a) - place(b))[0];
  look.told = () => {
    const one = look.first();
    const image = one && host(one).closest("[class*=st-key-chart-]")?.querySelector(".vf-stand-in");  // of a figure, before it
    const picture = covered ?? painted.get(image) ?? painted.get(one) ?? null;
    const body = document.querySelector(".st-key-page-body");
    const top = one ? place(one) : Infinity;
    const before = (kinds) => (body ? [...within(body, kinds)] : [])
      .filter((other) => other.checkVisibility() && place(other) < top).length;
    return {
      picture,
      live: picture === null ? look.live : Math.max(look.live, painted.get(one) ?? 0),
      shift: look.shift,
      top: one ? Math.round(top) : null,
      by: one ? [one.nodeName.toLowerCase(), ...one.classList].join(".").slice(0, 40) : "",
      controls: before(CONTROLS),
      asks: before("[class*='st-key-ask-']") > 0,
    };
  };
  const app = () => document.querySelector("[data-testid=stApp]");
  const done = () => app()?.dataset.testScriptState === "notRunning" && app()?.dataset.testConnectionState === "CONNECTED";
  const own = (one) => {
    const now = content(one);
    return now && now !== look.before.get(one);
  };
  const waits = () => [...document.querySelectorAll(".st-key-page-body [data-testid=stSkeleton]")]
    .some((one) => one.checkVisibility());
  // After the next frame is painted.
  const afterwards = (note) => requestAnimationFrame(() => setTimeout(() => note(performance.now() - look.start)));
  let frame = 0;
  const watch = () => {
    const now = performance.now();
    // (a long task between two frames is no rest: what it draws is seen in this one)
    look.rest += Math.min(now - frame, MOST);
    frame = now;
    const here = location.pathname === (look.path ?? location.pathname);
    const cover = document.getElementById("first-picture");
    for (const [one, body] of here ? candidates() : []) {
      if (painted.has(one) || !own(one)) continue;
      painted.set(one, null);
      look.rest = 0;
      const mine = painted;  // (of another page once it was left)
      afterwards((time) => {
        mine.set(one, time);
        if (body === cover) covered ??= time;
      });
    }
    const live = cover === null && [...painted.values()].some((time) => time !== null);
    // (a page without a picture is live once nothing has moved for a while)
    if (look.live === null && here && done() && (live || (cover === null && look.rest > 5000))) {
      look.live = performance.now() - look.start;
    }
    requestAnimationFrame(watch);
  };
  look.start = 0;
  // When a picture was painted.
  look.painted = (one) => painted.get(one) ?? null;
  // Whether all that comes has come, and nothing has moved for a while.
  look.still = (quiet) => look.live !== null && !waits() && look.rest > quiet;
  // From here on the pictures of another page count, and those that are there do not.
  look.leave = (path) => {
    for (const [one, what] of look.pictures()) look.before.set(one, what);
    [painted, covered] = [new Map(), null];
    Object.assign(look, { live: null, shift: 0, path, start: performance.now(), rest: 0 });
  };
  requestAnimationFrame(watch);
})()
