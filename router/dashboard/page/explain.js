// Paste a call, see its class, why, and where it would go now.

import { post } from "./api.js";
import { $, className, DASH, h, percent, seconds } from "./dom.js";
import { considered } from "./tail.js";

const EXAMPLE = { model: "chat", stream: true, messages: [{ role: "user", content: "Why is the sky blue?" }] };

const shown = { model: "", text: "" };

export function startExplain() {
  const form = $("explain-form");
  put(EXAMPLE.model);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      show(await post("explain", JSON.stringify(asked(form.elements))));
    } catch (error) {
      $("explained").replaceChildren(h("p", { className: "bad" }, error.message));
    }
  });
}

/** Once it is known which models there are, the example asks for one of them, unless somebody has changed it. */
export function drawExplain(state) {
  const model = state.backends.find((each) => each.models?.length)?.models[0];
  if (model && model !== shown.model && $("explain-form").elements.body.value === shown.text) put(model);
}

function put(model) {
  shown.model = model;
  shown.text = JSON.stringify({ ...EXAMPLE, model }, null, 2);
  $("explain-form").elements.body.value = shown.text;
}

function asked({ path, headers, body }) {
  const pairs = headers.value.split("\n").filter((line) => line.trim()).map((line) => {
    const at = line.indexOf(":");
    if (at < 1) throw new Error(`a header is written NAME: VALUE; this is not: ${line}`);
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  });
  try {
    return { path: path.value, headers: Object.fromEntries(pairs), body: JSON.parse(body.value) };
  } catch (error) {
    throw new Error(`the body is not JSON: ${error.message}`);
  }
}

const words = (name) => `${name}`.replaceAll("_", " ");

function show(told) {
  const decision = told.decision;
  const where = {
    dispatch: `goes to ${decision.backend} now`,
    wait: "waits in the line" + (decision.at_most_s ? `, at most ${seconds(decision.at_most_s)}` : ""),
    reject: `is turned away with ${decision.status}`,
  }[decision.action];
  const voices = told.voices.map((voice) => h("tr", {},
    h("th", { scope: "row" }, voice.source), h("td", {}, voice.class ?? h("span", { className: "dim" }, "no opinion")),
    h("td", { className: "dim" }, (voice.notes ?? []).map(words).join(", "))));
  $("explained").replaceChildren(
    h("p", { className: "answer" }, className(told.class), ` ${where}`),
    h("dl", { className: "detail" }, ...[
      ["Class by", `${told.source}, ${percent(told.confidence)} sure`], ["Because", told.reasons.map(words).join(", ")],
      ["Placed by", words(decision.reason) + (decision.message ? `: ${decision.message}` : "")],
      ["Answer", told.output ? `about ${told.output.p50_tokens} tokens, nine in ten below ${told.output.p90_tokens}` : DASH],
      ["Prompt", `about ${told.features.prompt_tokens} tokens`],
    ].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    h("h3", {}, "Backends"), considered(told.considered, decision.backend),
    h("h3", {}, "Who says what of its class"),
    h("table", { className: "voices" }, h("thead", {}, h("tr", {}, ...["Voice", "Says", "Notes"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, ...voices)),
    h("details", {}, h("summary", {}, "All of it as JSON"), h("pre", {}, JSON.stringify(told, null, 2))));
}
