// @ts-check
// The whole model as one picture of one forward, on a page or in a file of its own.

import { present } from "./js/present.js";
import { WholeModelView } from "./js/whole_model_view.js";

/** @import { Component } from "./js/types.d.ts" */
/** @import { SentPicture } from "./js/picture_types.d.ts" */

/** @param {Component<SentPicture>} component */
export default function whole_model_picture(component) {
  return present(WholeModelView, component);
}
