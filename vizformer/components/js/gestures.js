// @ts-check
// Pointer and keyboard on the large map.

/** @import { HeatMap } from "./map.js" */


/** @param {HeatMap} map */
export function listenToMap(map) {
  const target = map.over;
  /** @type {{ id: number, x: number, y: number, startX: number, startY: number, moved: boolean } | null} */
  let drag = null;

  /** @type {(event: MouseEvent) => [number, number]} */
  const place = (event) => {
    const box = target.getBoundingClientRect();
    const scale = box.width / target.offsetWidth || 1; // of a page that draws it smaller (a slide)
    return [(event.clientX - box.left) / scale, (event.clientY - box.top) / scale];
  };

  target.addEventListener("pointermove", (event) => {
    const [px, py] = place(event);
    if (drag && drag.id === event.pointerId) {
      drag.moved = drag.moved || Math.hypot(px - drag.startX, py - drag.startY) > 4;
      if (drag.moved && map.zoom > 1) map.pan(px - drag.x, py - drag.y);
      [drag.x, drag.y] = [px, py];
      target.classList.toggle("vf-dragging", drag.moved && map.zoom > 1);
    }
    map.point(map.cellUnder(px, py));
  });

  target.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const [px, py] = place(event);
    drag = { id: event.pointerId, x: px, y: py, startX: px, startY: py, moved: false };
    if (map.zoom > 1) target.setPointerCapture(event.pointerId);
  });

  target.addEventListener("pointerup", (event) => {
    const ended = drag;
    drag = null;
    target.classList.remove("vf-dragging");
    if (!ended || ended.id !== event.pointerId || ended.moved) return;
    const cell = map.cellUnder(...place(event));
    if (cell) map.on.choose(cell.query, cell.key);
  });

  target.addEventListener("pointercancel", () => { drag = null; });
  target.addEventListener("pointerleave", () => { if (!drag) map.point(null); });
  target.addEventListener("dblclick", () => { if (map.zoom > 1) map.reset(); });

  // The wheel belongs to the page unless the cells are small or already enlarged (or Ctrl says so).
  target.addEventListener("wheel", (event) => {
    const outward = event.deltaY > 0;
    if (!(event.ctrlKey || map.zoomable) || (outward && map.zoom === 1)) return;
    event.preventDefault();
    const [px, py] = place(event);
    const lines = event.deltaMode === 1 ? 16 : 1;
    map.zoomBy(Math.exp(-event.deltaY * lines * 0.0018), Math.max(0, px - map.layout.left), Math.max(0, py - map.layout.top));
    map.point(map.cellUnder(px, py));
  }, { passive: false });

  target.addEventListener("keydown", (event) => {
    if (event.metaKey || event.altKey || !map.scene) return;
    const { queries, keys } = map.scene.model;
    const { query, key } = map.cursor || map.scene.selected;
    const at = { query, key: key === null ? 0 : key };
    /** @type {Record<string, [number, number]>} */ const moves = {
      ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
      PageUp: [-10, 0], PageDown: [10, 0],
      Home: event.ctrlKey ? [-queries, -keys] : [0, -keys],
      End: event.ctrlKey ? [queries, keys] : [0, keys],
    };
    const move = moves[event.key];
    if (move) {
      const first = !map.cursor && key === null;  // the first arrow shows the cursor where it is
      const stay = first ? 0 : 1;
      map.point({
        query: Math.max(0, Math.min(queries - 1, at.query + stay * move[0])),
        key: Math.max(0, Math.min(keys - 1, at.key + stay * move[1])),
      }, true);
    } else if (event.key === "Enter" || event.key === " ") {
      map.on.choose(at.query, at.key);
    } else if (event.key === "+" || event.key === "=") {
      map.zoomBy(1.5);
    } else if (event.key === "-") {
      map.zoomBy(1 / 1.5);
    } else if (event.key === "0" || event.key === "Escape") {
      map.reset();
    } else {
      return;
    }
    event.preventDefault();
  });

  target.addEventListener("blur", () => map.point(null));
}
