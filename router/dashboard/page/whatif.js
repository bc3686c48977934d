// Other settings against the last hour: nothing is applied.

import { $, h } from "./dom.js";

export function startWhatIf() {
  $("what-if-part").replaceChildren(h("p", {}, "Not there yet."));
}
