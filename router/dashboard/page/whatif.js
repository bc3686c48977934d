// Other settings against the last hour: nothing is applied; what would have to be changed is printed.

import { json, post } from "./api.js";
import { $, className, count, DASH, h, percent, rate, seconds } from "./dom.js";

let shown = false;

/** Draws the form when the view is opened first. */
export async function openWhatIf() {
  if (shown) return;
  const part = $("what-if-part");
  try {
    const now = await json("what-if");
    shown = !now.why;
    part.replaceChildren(...(now.why ? off(now.why) : form(now)));
  } catch (error) {
    part.replaceChildren(h("p", { className: "bad" }, error.message));
  }
}

function off(why) {
  return [
    h("p", {}, "Here settings are tried on the calls of the last hour before they go live. For that the router has to write down its decisions:"),
    h("pre", {}, "decisions:\n  file: decisions.jsonl   # numbers and fixed words, never text"),
    h("p", { className: "dim" }, `Now: ${why}. A running router takes it over when the file is saved.`),
  ];
}

function form(now) {
  const text = h("textarea", { rows: 26, spellcheck: false, value: now.yaml, id: "what-if-yaml" });
  const button = h("button", { type: "submit" }, "Try on the last hour");
  const again = h("button", { type: "button", className: "quiet" }, "Undo edits");
  const result = h("div", { id: "what-if-result", "aria-live": "polite" });
  again.addEventListener("click", () => { text.value = now.yaml; });
  const made = h("form", {},
    h("p", { className: "dim" }, `The settings in effect that decide about calls. Edit them and see what they would have given: up to ${count(now.most_calls)} logged calls are replayed on a model of each backend, fitted to the log. Nothing is applied.`),
    h("label", {}, "Settings (YAML)", text),
    h("p", { className: "buttons" }, button, " ", again));
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    result.replaceChildren(h("p", { className: "dim" }, "Replaying at low priority; this takes from seconds to minutes."));
    try {
      result.replaceChildren(...told(await post("what-if", JSON.stringify({ yaml: text.value }))));
    } catch (error) {
      result.replaceChildren(h("pre", { className: "bad" }, error.message));
    } finally {
      button.disabled = false;
    }
  });
  return [made, result];
}

const COLUMNS = [["logged", "As logged"], ["now", "In effect, replayed"], ["changed", "Edited, replayed"]];

function told(found) {
  const columns = COLUMNS.filter(([name]) => found[name]);
  const head = h("thead", {}, h("tr", {}, h("th", { scope: "col" }, ""), ...columns.map(([, title]) => h("th", { scope: "col", className: "n" }, title)), h("th", { scope: "col", className: "n" }, "Edited against in effect")));
  const rows = [line("Mean of the classes in time", (column) => column.mean_share, percent, 1), line("Output tokens/s", (column) => column.total.tokens_per_s, rate, 1)];
  for (const name of ["ttft", "mixed", "throughput"]) {
    if (!columns.some(([column]) => found[column].classes[name])) continue;
    const of = (get) => (column) => (column.classes[name] ? get(column.classes[name]) : null);
    rows.push(
      h("tr", {}, h("th", { scope: "rowgroup", colSpan: columns.length + 2 }, className(name))),
      line("calls", of((each) => each.calls), count, 0), line("in time", of((each) => each.share), percent, 1),
      line("first token p95", of((each) => each.ttft_s.p95), seconds, -1), line("whole answer p95", of((each) => each.complete_s.p95), seconds, -1),
      line("waited p95", of((each) => each.waited_s.p95), seconds, -1), line("turned away", of((each) => each.shed), count, -1));
  }

  /** `better`: 1 more is better, -1 less is better, 0 neither. */
  function line(title, get, format, better) {
    const [now, changed] = [get(found.now), get(found.changed)];
    let [word, kind] = [DASH, "dim"];
    if (better && now !== null && changed !== null && now !== undefined && changed !== undefined) {
      const change = changed - now;
      const small = Math.abs(change) <= 0.01 * Math.max(Math.abs(now), Math.abs(changed));
      [word, kind] = small ? ["same", "dim"] : change * better > 0 ? ["▲ better", "good"] : ["▼ worse", "bad"];
    }
    return h("tr", {}, h("th", { scope: "row" }, title), ...columns.map(([name]) => h("td", { className: "n" }, format(get(found[name])))), h("td", { className: `n ${kind}` }, word));
  }

  return [
    h("h3", {}, `${count(found.calls)} calls of the last hour`),
    h("div", { className: "scroll" }, h("table", { className: "what-if" }, head, h("tbody", {}, ...rows))),
    h("p", { className: "dim" }, "Compare the two replayed columns with each other; how far the middle one is from the log tells how good the model is.", ...found.notes.map((note) => ` ${note}.`)),
    h("h3", {}, "To apply it"),
    found.diff ? h("pre", { id: "what-if-diff" }, found.diff) : h("p", { className: "dim" }, "Nothing was edited."),
    h("p", { className: "dim" }, "Make this change in the settings file; a running router takes it over when the file is saved."),
  ];
}
