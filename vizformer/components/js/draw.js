// What the two canvases of the large map show.

function drawMap(map) {
  const { plan, scene, density } = map;
  const { theme, model } = scene;
  const context = map.base.getContext("2d");
  context.setTransform(density, 0, 0, density, 0, 0);
  context.clearRect(0, 0, plan.width, plan.height);
  context.save();
  context.beginPath();
  context.rect(plan.left, plan.top, plan.plotWidth, plan.plotHeight);
  context.clip();
  context.fillStyle = hatching(context, theme, density);
  context.fillRect(plan.left, plan.top, plan.plotWidth, plan.plotHeight);
  const picture = scene.image || scene.blurred;
  const [scaleX, scaleY] = [picture.width / model.keys, picture.height / model.queries];
  context.imageSmoothingEnabled = !scene.image || Math.min(map.pitchX, map.pitchY) * density < 1;
  context.globalAlpha = scene.image ? 1 : 0.45;
  context.drawImage(
    picture,
    map.x * scaleX, map.y * scaleY, (model.keys / map.zoom) * scaleX, (model.queries / map.zoom) * scaleY,
    plan.left, plan.top, plan.plotWidth, plan.plotHeight,
  );
  context.globalAlpha = 1;
  if (Math.min(map.pitchX, map.pitchY) >= 12) drawGaps(map, context);
  if (scene.image && map.pitchX >= 30 && map.pitchY >= 18) drawValues(map, context);
  context.restore();
  drawLabels(map, context);
}

// [first, past the last] cell in sight along an axis.
function inSight(start, count, zoom) {
  return [Math.floor(start), Math.min(count, Math.ceil(start + count / zoom))];
}

function drawGaps(map, context) {
  const { plan, scene } = map;
  const [x0, x1] = inSight(map.x, scene.model.keys, map.zoom);
  const [y0, y1] = inSight(map.y, scene.model.queries, map.zoom);
  context.strokeStyle = scene.theme.background;
  context.lineWidth = Math.min(map.pitchX, map.pitchY) >= 36 ? 2 : 1;
  context.beginPath();
  for (let key = x0; key <= x1; key++) {
    const px = plan.left + (key - map.x) * map.pitchX;
    context.moveTo(px, plan.top);
    context.lineTo(px, plan.top + plan.plotHeight);
  }
  for (let query = y0; query <= y1; query++) {
    const py = plan.top + (query - map.y) * map.pitchY;
    context.moveTo(plan.left, py);
    context.lineTo(plan.left + plan.plotWidth, py);
  }
  context.stroke();
}

function drawValues(map, context) {
  const { plan, scene } = map;
  const { model, theme, layer, head, view, range } = scene;
  const [x0, x1] = inSight(map.x, model.keys, map.zoom);
  const [y0, y1] = inSight(map.y, model.queries, map.zoom);
  const size = Math.min(map.pitchX * 0.31, map.pitchY * 0.46, 21);
  const digits = view === "weights" ? (map.pitchX >= 74 ? 3 : 2) : (map.pitchX >= 62 ? 2 : 1);
  context.font = `${size}px ${theme.font}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let query = y0; query < y1; query++) {
    for (let key = x0; key < x1; key++) {
      const cell = cellAt(model, layer, head, query, key);
      if (cell.reason) continue;
      const value = view === "weights" ? cell.weight : cell.score;
      const colour = view === "weights" ? theme.weights[weightStep(value)] : theme.scores[scoreStep(value, range)];
      context.fillStyle = inkOn(colour);
      context.fillText(
        signed(value, digits),
        plan.left + (key + 0.5 - map.x) * map.pitchX,
        plan.top + (query + 0.5 - map.y) * map.pitchY + size * 0.06,
      );
    }
  }
}

// Letters grow with the cells, also when those are enlarged, up to what the margins were planned for.
function labelSize(map) {
  return Math.min(letters(Math.min(map.pitchX, map.pitchY)), Math.max(map.plan.font, ENLARGED));
}

function drawLabels(map, context) {
  const { scene } = map;
  const size = labelSize(map);
  context.fillStyle = scene.theme.text;
  context.font = `${size}px ${scene.theme.font}`;
  const rowStep = Math.ceil((size * 0.98) / map.pitchY);
  const keyStep = Math.ceil((map.plan.angle === 45 ? size * 1.05 : map.plan.angle === 90 ? size * 0.98 : 1) / map.pitchX);
  const [y0, y1] = inSight(map.y, scene.model.queries, map.zoom);
  for (let query = y0; query < y1; query++) if (query % rowStep === 0) rowLabel(map, context, query, size);
  context.font = `${size * map.plan.keyScale}px ${scene.theme.font}`;
  const [x0, x1] = inSight(map.x, scene.model.keys, map.zoom);
  for (let key = x0; key < x1; key++) if (key % keyStep === 0) keyLabel(map, context, key, size);
}

function rowLabel(map, context, query, size, plate) {
  const { plan, scene } = map;
  const py = plan.top + (query + 0.5 - map.y) * map.pitchY;
  if (py < plan.top || py > plan.top + plan.plotHeight) return;
  const text = shorten(context, scene.queryTokens[query], plan.left - 12);
  context.textAlign = "right";
  context.textBaseline = "middle";
  if (plate) drawPlate(context, plan.left - 8 - context.measureText(text).width, py, text, size, plate);
  context.fillText(text, plan.left - 8, py);
}

function keyLabel(map, context, key, size, plate) {
  const { plan, scene } = map;
  const px = plan.left + (key + 0.5 - map.x) * map.pitchX;
  if (px < plan.left || px > plan.left + plan.plotWidth) return;
  context.save();
  context.translate(px, plan.top - 6);
  context.textBaseline = "middle";
  let text = scene.keyTokens[key];
  if (plan.angle === 0) {
    text = shorten(context, text, Math.max(map.pitchX - 4, plan.cellWidth));
    context.textAlign = "center";
    context.translate(0, -size * 0.5);
    if (plate) drawPlate(context, -context.measureText(text).width / 2, 0, text, size, plate);
  } else {
    text = shorten(context, text, plan.keyRoom);
    context.rotate((-plan.angle * Math.PI) / 180);
    context.textAlign = "left";
    if (plate) drawPlate(context, 0, 0, text, size, plate);
  }
  context.fillText(text, 0, 0);
  context.restore();
}

// The selected row, the chosen cell, and the cell under the pointer or the keyboard's cursor.
function drawMarks(map) {
  const { plan, scene, density, cursor } = map;
  const { theme, selected } = scene;
  const context = map.over.getContext("2d");
  context.setTransform(density, 0, 0, density, 0, 0);
  context.clearRect(0, 0, plan.width, plan.height);
  context.save();
  context.beginPath();
  context.rect(plan.left - 3, plan.top - 3, plan.plotWidth + 6, plan.plotHeight + 6);
  context.clip();
  if (map.pitchY >= 14) frame(map, context, selected.query, 0, scene.model.keys, theme.background, 5);
  frame(map, context, selected.query, 0, scene.model.keys, theme.accent, 2.5);
  if (selected.key !== null) frame(map, context, selected.query, selected.key, 1, theme.accent, 2.5);
  if (cursor && cursor.key !== null) {
    frame(map, context, cursor.query, cursor.key, 1, "#000", 4);
    frame(map, context, cursor.query, cursor.key, 1, "#fff", 1.8);
  }
  context.restore();
  const size = Math.max(11, labelSize(map));
  context.font = `600 ${size}px ${theme.font}`;
  const chosen = [theme.accent, theme.onAccent];
  const pointed = [theme.text, theme.background];
  rowLabel(map, context, selected.query, size, chosen);
  if (cursor) {
    if (cursor.query !== selected.query) rowLabel(map, context, cursor.query, size, pointed);
    context.font = `600 ${size * plan.keyScale}px ${theme.font}`;
    if (cursor.key !== null) keyLabel(map, context, cursor.key, size, pointed);
  } else if (selected.key !== null) {
    context.font = `600 ${size * plan.keyScale}px ${theme.font}`;
    keyLabel(map, context, selected.key, size, chosen);
  }
}

// A frame around `count` cells of a row; around small cells it lies outside, so as not to hide them.
function frame(map, context, query, key, count, colour, width) {
  const { plan } = map;
  const out = map.pitchY < 14 ? width / 2 : 0;
  const x0 = Math.max(plan.left, plan.left + (key - map.x) * map.pitchX) - out;
  const x1 = Math.min(plan.left + plan.plotWidth, plan.left + (key + count - map.x) * map.pitchX) + out;
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.strokeRect(x0, plan.top + (query - map.y) * map.pitchY - out, x1 - x0, map.pitchY + 2 * out);
}
