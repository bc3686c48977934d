// What callers get: the verdict in one sentence, promises by class, the line, and who gets what.

import { $, className, count, DASH, h, keyed, percent, plural, rate, seconds, table, text } from "./dom.js";

const CLASSES = ["ttft", "mixed", "throughput"];
const WORDS = { green: "kept", yellow: "tight", red: "missed too often", none: "nothing to judge yet" };
const TITLES = { key: "Client key", model: "Model", backend: "Backend", lane: "Lane", class: "Class" };
const WINDOW = "5m";

export function drawVerdict(state) {
  const now = state.goodput.windows[WINDOW].total;
  const down = state.backends.filter((each) => each.health !== "up" || each.drained);
  const node = $("verdict");
  let first = "No calls in the last 5 minutes.";
  if (now.compliance_0_1 !== null) {
    const kept = percent(now.compliance_0_1);
    first = { green: `Callers get what they wait for: ${kept} of promises kept.`, yellow: `It is getting tight: ${kept} of promises kept.`, red: `Callers wait too long: only ${kept} of promises kept.` }[now.colour];
  } else if (now.calls) first = `${plural(now.calls, "call")} served; nothing was promised to them.`;
  const why = [];
  const missed = missedWords(now.missed);
  if (missed) why.push(`missed: ${missed}`);
  if (down.length) why.push(`not serving: ${down.map((each) => `${each.name} (${each.drained ? "drained" : each.health})`).join(", ")}`);
  if (state.history?.problem) why.push(`the history is not written: ${state.history.problem}`);
  const rest = why.length ? why.join(" · ") : "Last 5 minutes.";
  if (node.dataset.shown !== first + rest) {
    node.dataset.shown = first + rest;
    node.replaceChildren(first, " ", h("small", {}, rest));
  }
  const waiting = state.line.reduce((total, each) => total + each.waiting, 0);
  const up = state.backends.length - down.length;
  table2($("totals"), [
    ["backends serving", `${up} of ${state.backends.length}`],
    ["calls open", count(state.open_calls)],
    ["in line", count(waiting)],
    ["calls/s", rate(now.calls_per_s)],
    ["of them in time", rate(now.inside_per_s)],
    ["tokens/s", rate(now.tokens_per_s)],
    ["ttft first token p95", seconds(state.goodput.windows[WINDOW].class.ttft?.ttft_s.p95 ?? null)],
    ["policy", state.policy],
  ]);
}

function table2(node, pairs) {
  keyed(node, pairs, ([name]) => name, ([name]) => {
    const value = h("dd");
    return { node: h("div", {}, h("dt", {}, name), value), update: ([, shown]) => text(value, shown) };
  });
}

function missedWords(missed) {
  const words = { ttft: "first token", tpot: "token gaps", complete: "whole answer", answer: "no answer" };
  return Object.entries(missed).filter(([, number]) => number).map(([name, number]) => `${words[name]} ${count(number)}×`).join(", ");
}

// --- promises

export function drawPromises(state) {
  const rows = CLASSES.map((name) => ({
    name,
    slo: state.line.find((each) => each.class === name).slo,
    windows: Object.fromEntries(["1m", "5m", "1h"].map((each) => [each, state.goodput.windows[each].class[name]])),
  }));
  keyed($("promises"), rows, (row) => row.name, makePromise);
}

function promised(slo) {
  const parts = [];
  if (slo.ttft) parts.push(`first token ≤ ${seconds(slo.ttft)}`);
  if (slo.tpot) parts.push(`then ≤ ${seconds(slo.tpot)} a token`);
  if (slo.complete) parts.push(`whole answer ≤ ${seconds(slo.complete)}`);
  return parts.join(", ") || "nothing promised";
}

function makePromise(row) {
  const word = h("span", { className: "word" });
  const pct = h("span", { className: "pct" });
  const fill = h("i");
  const gauge = h("div", { className: "gauge", role: "meter", "aria-valuemin": "0", "aria-valuemax": "100", "aria-label": `${row.name}: promises kept in the last 5 minutes` }, fill, h("span", { title: "90 %" }), h("span", { title: "95 %" }));
  gauge.children[1].style.left = "90%";
  gauge.children[2].style.left = "95%";
  const slo = h("span");
  const others = h("span");
  const misses = h("span");
  return {
    node: h("div", { className: "promise", data: { class: row.name } },
      h("div", { className: "head" }, h("b", {}, className(row.name)), word, pct), gauge,
      h("div", { className: "more" }, slo, others, misses)),
    update(now) {
      const five = now.windows[WINDOW];
      const colour = five?.colour ?? "none";
      const share = five?.compliance_0_1 ?? null;
      word.className = `word ${colour}`;
      text(word, Object.values(now.slo).some(Boolean) || colour !== "none" ? WORDS[colour] : "no promise");
      text(pct, share === null ? "" : percent(share));
      fill.className = colour;
      fill.style.width = `${100 * (share ?? 0)}%`;
      if (share === null) gauge.removeAttribute("aria-valuenow");
      else gauge.setAttribute("aria-valuenow", (100 * share).toFixed(1));
      gauge.setAttribute("aria-valuetext", share === null ? WORDS.none : `${percent(share)}, ${WORDS[colour]}`);
      text(slo, promised(now.slo));
      text(others, ["1m", "1h"].map((each) => `${each} ${percent(now.windows[each]?.compliance_0_1 ?? null)}`).join(" · ") + ` · ${plural(five?.calls ?? 0, "call")} in 5m`);
      text(misses, five && missedWords(five.missed) ? `missed: ${missedWords(five.missed)}` : "");
    },
  };
}

// --- line, pipelines

export function drawLine(state) {
  const spread = state.goodput.windows["1m"].class;
  table($("line").tBodies[0], state.line, (row) => row.class, (row) => [
    className(row.class),
    [count(row.waiting), "n"],
    [row.waiting ? `about ${seconds(row.expected_wait_s)}` : "none", row.waiting ? "n" : "n dim"],
    [seconds(spread[row.class]?.queue_s.p95 ?? null), "n"],
    [seconds(row.max_wait_s), "n dim"],
  ]);
}

export function drawPipelines(state) {
  const { open, over, open_count: running } = state.pipelines;
  const rows = [...open, ...over].slice(0, 6);
  $("pipelines-part").hidden = !rows.length;
  text($("pipelines-note"), `${count(running)} under way`);
  const words = { met: "kept", missed: "missed", open: "in time so far", none: DASH };
  table($("pipelines").tBodies[0], rows, (row) => row.id, (row) => [
    row.id.slice(0, 10),
    [row.state, row.state === "running" ? "" : "dim"],
    [`${count(row.hops)}${row.failed ? `, ${count(row.failed)} failed` : ""}`, "n"],
    [seconds(row.makespan_s), "n"],
    [seconds(row.critical_path.line_s), "n"],
    [row.state === "running" && row.deadline_in_s > 0 ? `in ${seconds(row.deadline_in_s)}` : words[row.deadline], row.deadline === "missed" ? "n bad" : "n"],
  ]);
}

// --- who gets what

export function drawClients(state) {
  if (!state.goodput) return;
  const by = $("by").value;
  const window = state.goodput.windows[$("window").value];
  text($("by-title"), TITLES[by]);
  const rows = Object.entries(window[by]).map(([name, counts]) => ({ name, ...counts })).sort((one, other) => other.calls - one.calls);
  const body = $("clients").tBodies[0];
  table(body, rows.length ? rows : [null], (row) => (row ? row.name : ""), (row) => row === null
    ? [["no calls yet", "dim"], ...Array(10).fill("")]
    : [
      row.name === "none" ? { key: "no key", backend: "no backend", lane: "no lane" }[by] ?? "none" : row.name,
      [count(row.calls), "n"],
      [h("span", { className: `word ${row.colour}` }, row.compliance_0_1 === null ? DASH : percent(row.compliance_0_1)), "n"],
      missedWords(row.missed) || DASH,
      [seconds(row.ttft_s.p50), "n"], [seconds(row.ttft_s.p95), "n"], [seconds(row.tpot_s.p95), "n"],
      [seconds(row.complete_s.p95), "n"], [seconds(row.queue_s.p95), "n"],
      [rate(row.tokens_per_s), "n"], [rate(row.tokens_inside_per_s), "n"],
    ]);
}
