// @ts-check
// Where the picture of the whole model has little room its parts stand one below the other: on a phone, and on paper.

const ROOM = 936;  // px, that the lanes and the glass need beside one another

/** @param {HTMLElement} root */
export function watchWidth(root) {
  const fit = () => void root.classList.toggle("vf-whole-narrow", root.clientWidth <= ROOM);
  const observer = new ResizeObserver(fit);
  observer.observe(root);
  fit();
  return observer;
}
