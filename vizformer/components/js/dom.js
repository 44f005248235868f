// @ts-check
// Elements of the page.

// A new element; text always as text, never as markup.
export function element(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

// A button that shows a sign; what it does is said on hover and to screen readers.
export function signButton(sign, label, action) {
  const button = element("button", "", sign);
  button.type = "button";
  button.title = label;
  button.setAttribute("aria-label", label);
  button.onclick = action;
  return button;
}
