// Shared by the components. The files named in a component's Python module are joined into one ES module, in that
// order; every name at the top level of a file is therefore visible in the files after it.

// Puts values into the {places} of a sentence. One pass: a token that reads "{key}" stays as it is.
function fill(sentence, values) {
  return sentence.replace(/\{(\w+)\}/g, (place, name) => (name in values ? String(values[name]) : place));
}

// A new element; text always as text, never as markup.
function element(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

// A button that shows a sign; what it does is said on hover and to screen readers.
function signButton(sign, label, action) {
  const button = element("button", "", sign);
  button.type = "button";
  button.title = label;
  button.setAttribute("aria-label", label);
  button.onclick = action;
  return button;
}

// The place on an axis of `count` that a wish means: what comes from a link or from an older text may not exist.
function within(wish, count) {
  return Math.max(0, Math.min(count - 1, Math.trunc(Number(wish)) || 0));
}

// A token on one line, with a sign for what would not be seen.
function visible(token) {
  const line = token.replace(/\r?\n|\r/g, "↵").replace(/\t/g, "⇥");
  return line.trim() === "" ? "␣".repeat(Math.max(1, Math.min(line.length, 3))) : line;
}

const TYPES = { uint8: Uint8Array, uint16: Uint16Array, float32: Float32Array };

// A column of numbers: an Arrow table from Streamlit, or base64 text and the name of its type from a file.
function column(value, type) {
  if (value === undefined || value === null) return null;
  if (typeof value !== "string") return value.getChildAt(0).toArray();
  const text = atob(value);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new TYPES[type](bytes.buffer);
}

// A view that Streamlit takes down and puts up again (a layout that moved) goes on where it was.
const MEMORY = new Map();

// One conversation with Python: obey a version once, report what people choose. _echo.py says why.
class Conversation {
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

function present(View, component) {
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
