// One press of Back goes back by one thing that the reader did. Streamlit makes an entry of the history for the page and
// one for each change of its link; what follows without anything being pressed belongs to the entry that is there.
(() => {
  if (history.oneEntryForOnePress) return;
  history.oneEntryForOnePress = true;
  const push = history.pushState;
  let pressed = false;
  const press = (event) => { pressed = pressed || !(event.altKey || event.ctrlKey || event.metaKey); };
  for (const kind of ["pointerdown", "keydown"]) addEventListener(kind, press, true);
  addEventListener("popstate", () => { pressed = false; }, true);
  history.pushState = function (state, unused, url) {
    const there = new URL(url ?? location.href, location.href);
    if (there.pathname === location.pathname && !pressed) return history.replaceState(state, unused, url);
    pressed = false;
    return push.call(history, state, unused, url);
  };
})();
