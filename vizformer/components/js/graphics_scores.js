// @ts-check
// Computes the scores of a head on the graphics processor, in a worker. Some cells of what comes back are held against this
// program's own numbers, so that a driver that rounds, or has lost its memory, is not believed.

import { RowScores } from "./computed_head.js";

/** @import { Operands } from "./computed_head.js" */

// It has all that it needs in itself: its text is what a worker is made of.
export class GraphicsScores extends RowScores {
  // One triangle that covers the whole frame.
  static CORNERS = [
    "#version 300 es",
    "void main() { gl_Position = vec4(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0, 0.0, 1.0); }",
  ].join("\n");

  // A pixel is four keys of a row. q and k lie in textures, four numbers in a texel:
  //   score = byDistance[key - query + queries - 1] + the sum over the texels of dot(q, k)
  static SCORES = [
    "#version 300 es",
    "precision highp float;",
    "precision highp int;",
    "precision highp sampler2D;",
    "uniform sampler2D q, k, byDistance;",
    "uniform int first, queries, keys, texels, distancesInLine;",
    "out vec4 scores;",
    "float distanceOf(int query, int key) {",
    "  int at = key - query + queries - 1;",
    "  return distancesInLine == 0 ? 0.0 : texelFetch(byDistance, ivec2(at % distancesInLine, at / distancesInLine), 0).r;",
    "}",
    "void main() {",
    "  int query = min(first + int(gl_FragCoord.y), queries - 1);",
    "  ivec4 key = min(4 * int(gl_FragCoord.x) + ivec4(0, 1, 2, 3), keys - 1);",
    "  vec4 sum = vec4(distanceOf(query, key.x), distanceOf(query, key.y), distanceOf(query, key.z), distanceOf(query, key.w));",
    "  for (int i = 0; i < texels; i++) {",
    "    vec4 a = texelFetch(q, ivec2(i, query), 0);",
    "    sum += vec4(",
    "      dot(a, texelFetch(k, ivec2(i, key.x), 0)), dot(a, texelFetch(k, ivec2(i, key.y), 0)),",
    "      dot(a, texelFetch(k, ivec2(i, key.z), 0)), dot(a, texelFetch(k, ivec2(i, key.w), 0)));",
    "  }",
    "  scores = sum;",
    "}",
  ].join("\n");

  static PROGRAMS = /swiftshader|llvmpipe|softpipe|software|basic render/i;  // that browsers call a renderer
  static DISTANCES_IN_LINE = 1024;  // of the texture: there are more of them than a line may have texels
  static LOOKS = 16;  // cells of each block that are computed here too
  static MOST_APART = 1e-4;  // of a score, in parts of 1 + its size: weights agree to four digits

  // A context in which it can be done; null where a program draws instead of a graphics processor: the workers are faster.
  /** @returns {WebGL2RenderingContext | null} */
  static context() {
    if (typeof OffscreenCanvas === "undefined") return null;
    const gl = new OffscreenCanvas(1, 1).getContext("webgl2", { failIfMajorPerformanceCaveat: true, antialias: false, depth: false });
    if (gl === null) return null;
    const said = gl.getExtension("WEBGL_debug_renderer_info");  // a browser may keep the name for itself
    const name = gl.getParameter(said ? said.UNMASKED_RENDERER_WEBGL : gl.RENDERER);
    if (gl.getExtension("EXT_color_buffer_float") && !GraphicsScores.PROGRAMS.test(name)) return gl;
    gl.getExtension("WEBGL_lose_context")?.loseContext();
    return null;
  }

  // Whether the graphics processor takes textures that are large enough for a head.
  /** @param {Operands} operands @param {WebGL2RenderingContext} gl */
  static fits({ queries, keys }, gl) {
    return Math.max(queries, keys, GraphicsScores.DISTANCES_IN_LINE) <= gl.getParameter(gl.MAX_TEXTURE_SIZE);
  }

  /** @param {Operands} operands @param {WebGL2RenderingContext} gl */
  constructor(operands, gl) {
    super(operands);
    const { q, k, byDistance, queries, keys, width } = this;
    const { CORNERS, SCORES, DISTANCES_IN_LINE } = GraphicsScores;
    const texels = Math.ceil(width / 4);
    const lines = Math.ceil((queries + keys - 1) / DISTANCES_IN_LINE);
    this.gl = gl;
    this.believed = true;
    this.pixelsInRow = Math.ceil(keys / 4);
    this.pixels = new Float32Array(0);  // of a block of rows, as they were drawn
    this.program = /** @type {WebGLProgram} */ (gl.createProgram());
    for (const [kind, source] of /** @type {[number, string][]} */ ([[gl.VERTEX_SHADER, CORNERS], [gl.FRAGMENT_SHADER, SCORES]])) {
      const shader = /** @type {WebGLShader} */ (gl.createShader(kind));
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(this.program, shader);
      gl.deleteShader(shader);
    }
    gl.linkProgram(this.program);
    gl.useProgram(this.program);
    /** @type {[string, number, number, number, number, Float32Array][]} */ const read = [
      ["q", gl.RGBA32F, gl.RGBA, texels, queries, this.padded(q, width, 4 * texels)],
      ["k", gl.RGBA32F, gl.RGBA, texels, keys, this.padded(k, width, 4 * texels)],
      ["byDistance", gl.R32F, gl.RED, DISTANCES_IN_LINE, lines, this.padded(byDistance ?? new Float32Array(0), 1, 1, DISTANCES_IN_LINE * lines)],
    ];
    this.textures = read.map(([name, ...texture], unit) => {
      gl.uniform1i(gl.getUniformLocation(this.program, name), unit);
      return this.texture(unit, ...texture);
    });
    this.drawnUnit = read.length;  // of the texture that is drawn on
    for (const [name, value] of Object.entries({ queries, keys, texels, distancesInLine: byDistance ? DISTANCES_IN_LINE : 0 })) {
      gl.uniform1i(gl.getUniformLocation(this.program, name), value);
    }
    this.first = gl.getUniformLocation(this.program, "first");
    this.frame = gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.frame);
  }

  // Rows of numbers, each with zeros up to the width of its texels; and with zero rows at the end where it is said.
  /** @param {Float32Array} numbers @param {number} width @param {number} wide @param {number} [size] @returns {Float32Array} */
  padded(numbers, width, wide, size = (numbers.length / width) * wide) {
    if (numbers.length === size) return numbers;
    const found = new Float32Array(size);
    if (width === wide) found.set(numbers);
    else for (let row = 0; row * width < numbers.length; row++) found.set(numbers.subarray(row * width, (row + 1) * width), row * wide);
    return found;
  }

  /** @param {number} unit @param {number} kept @param {number} format @param {number} width @param {number} height @param {Float32Array | null} numbers */
  texture(unit, kept, format, width, height, numbers) {
    const { gl } = this;
    const texture = gl.createTexture();
    gl.activeTexture(gl.TEXTURE0 + unit);
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    gl.texImage2D(gl.TEXTURE_2D, 0, kept, width, height, 0, format, gl.FLOAT, numbers);
    return texture;
  }

  /** @param {number} first @param {number} end @param {Uint8Array | null} reasons @param {Float32Array} scores */
  computeScores(first, end, reasons, scores) {
    if (this.believed) this.draw(first, end);
    this.believed &&= this.isRight(first, end);
    if (!this.believed) {
      super.computeScores(first, end, reasons, scores);
      return;
    }
    const { keys, pixels, pixelsInRow } = this;
    for (let row = 0; row < end - first; row++) {
      const from = 4 * row * pixelsInRow;
      scores.set(pixels.subarray(from, from + keys), row * keys);
    }
    if (reasons) for (let at = 0; at < (end - first) * keys; at++) if (reasons[at]) scores[at] = 0;
  }

  // The scores of some rows, of masked cells too, into `pixels`.
  /** @param {number} first @param {number} end */
  draw(first, end) {
    const { gl, pixelsInRow } = this;
    const rows = end - first;
    if (this.pixels.length < 4 * pixelsInRow * rows) {
      this.pixels = new Float32Array(4 * pixelsInRow * rows);
      const drawn = this.texture(this.drawnUnit, gl.RGBA32F, gl.RGBA, pixelsInRow, rows, null);
      gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, drawn, 0);
      this.textures.push(drawn);
      gl.viewport(0, 0, pixelsInRow, rows);
    }
    gl.uniform1i(this.first, first);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    gl.readPixels(0, 0, pixelsInRow, rows, gl.RGBA, gl.FLOAT, this.pixels);
  }

  // Whether cells all over the rows that were drawn are as computed here. (A context that is lost draws nothing.)
  /** @param {number} first @param {number} end */
  isRight(first, end) {
    const { keys, pixels, pixelsInRow } = this;
    const { LOOKS, MOST_APART } = GraphicsScores;
    for (let look = 0; look < LOOKS; look++) {
      const row = Math.floor((look * (end - first)) / LOOKS);
      const key = (Math.floor(((look + 0.5) * keys) / LOOKS) + 7 * first) % keys;
      const exact = this.scoreOf(first + row, key);
      if (!(Math.abs(pixels[4 * row * pixelsInRow + key] - exact) <= MOST_APART * (1 + Math.abs(exact)))) return false;
    }
    return true;
  }

  // Gives the memory of the graphics processor back.
  close() {
    const { gl } = this;
    for (const texture of this.textures) gl.deleteTexture(texture);
    gl.deleteFramebuffer(this.frame);
    gl.deleteProgram(this.program);
  }
}
