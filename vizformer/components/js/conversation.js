// @ts-check
// What a component hears from Python and tells it, and its place on the page.

// A view that Streamlit takes down and puts up again (a layout that moved) goes on where it was.
const MEMORY = new Map();

// One conversation with Python: obey a version once, report what people choose. _echo.py says why.
export class Conversation {
  constructor() {
    this.version = undefined;
    this.value = undefined;
    this.timer = null;
    this.seq = Date.now();
  }

  // Takes what Python sent; true when the value came from there and has to be drawn.
  listen(component) {
    const { data } = component;
    this.name = data.key;
    this.send = component.setStateValue;
    const kept = MEMORY.get(this.name);
    if (this.version === undefined && kept && kept.version === data.version) {
      this.version = kept.version;
      this.value = kept.value;
      if (!kept.reported) this.tell(this.value);
      return true;
    }
    if (this.version === data.version) return false;
    clearTimeout(this.timer);
    this.version = data.version;
    this.value = data.selected;
    this.remember(true);
    return true;
  }

  // Reports a choice; several within `wait` milliseconds become one.
  tell(value, wait = 150) {
    this.value = value;
    this.remember(false);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.seq = Math.max(this.seq + 1, Date.now());
      this.remember(true);
      if (this.send) this.send("selected", { ...this.value, version: this.version, seq: this.seq });
    }, wait);
  }

  remember(reported) {
    if (this.name !== undefined) MEMORY.set(this.name, { version: this.version, value: this.value, reported });
  }
}

// Puts a view into its place on the page, or brings the one that is there up to date; returns what takes it down.
// Streamlit calls again with the same place whenever its data or the theme changes.
const VIEWS = new WeakMap();

export function present(View, component) {
  const { parentElement } = component;
  let view = VIEWS.get(parentElement);
  if (!view) {
    view = new View(parentElement);
    VIEWS.set(parentElement, view);
  }
  view.update(component);
  view.calls = (view.calls || 0) + 1;
  const call = view.calls;
  return () => {
    if (view.calls !== call) return;  // Streamlit may clean up after a call that a newer one has replaced
    view.close();
    VIEWS.delete(parentElement);
  };
}
