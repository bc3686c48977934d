// The live tail of decisions: why did this go there? Newest first; a row opens to all that is known of its call.

import { $, className, clock, count, DASH, h, percent, seconds, text } from "./dom.js";

const MOST = 200;
const calls = [];
const open = new Set();
let paused = false;
let newest = 0;
let missedWhilePaused = 0;

export function startTail() {
  for (const id of ["tail-class", "tail-find", "tail-missed"]) $(id).addEventListener("input", redraw);
  $("tail-pause").addEventListener("click", () => {
    paused = !paused;
    missedWhilePaused = 0;
    $("tail-pause").setAttribute("aria-pressed", `${paused}`);
    text($("tail-pause"), paused ? "Go on" : "Pause");
    if (!paused) redraw();
    note();
  });
}

export function addCalls(found, all) {
  if (all) {
    // A router that was started anew counts from 1 again.
    if (!found.length || found.at(-1).number < newest) newest = calls.length = 0;
  }
  const fresh = found.filter((call) => call.number > newest);
  if (!fresh.length && !all) return;
  newest = fresh.at(-1)?.number ?? newest;
  calls.push(...fresh);
  calls.splice(0, Math.max(0, calls.length - MOST));
  if (paused) {
    missedWhilePaused += fresh.length;
    return note();
  }
  if (all) return redraw();
  const body = $("tail").tBodies[0];
  body.querySelector(".nothing")?.remove();
  for (const call of fresh) if (wanted(call)) body.prepend(...rows(call, true));
  while (body.querySelectorAll("tr:not(.more)").length > MOST) body.lastElementChild.remove();
  note();
}

function note() {
  text($("tail-note"), paused ? `paused, ${count(missedWhilePaused)} new` : `last ${count(calls.length)}`);
}

function wanted(call) {
  const find = $("tail-find").value.trim().toLowerCase();
  if ($("tail-class").value && call.class !== $("tail-class").value) return false;
  if ($("tail-missed").checked && !call.missed?.length) return false;
  return !find || [call.id, call.backend, call.model, call.key, call.placement, call.outcome, ...call.reasons].join(" ").toLowerCase().includes(find);
}

function redraw() {
  const shown = calls.filter(wanted).reverse();
  const body = $("tail").tBodies[0];
  body.replaceChildren(...shown.flatMap((call) => rows(call, false)));
  if (!shown.length) {
    const words = calls.length ? "No call among the last ones is like that." : "No call has ended since the start. Send one, and it appears here.";
    body.append(h("tr", { className: "nothing" }, h("td", { colSpan: 11, className: "dim" }, words)));
  }
  note();
}

const MISSED = { ttft: "first token", tpot: "token gaps", complete: "whole answer", answer: "no answer" };

function promise(call) {
  if (call.outcome !== "completed") {
    const words = { client_gone: "client left" }[call.outcome] ?? call.outcome.replaceAll("_", " ");
    return h("span", { className: call.missed?.length ? "bad" : "dim" }, `${call.missed?.length ? "✕ " : ""}${words}`);
  }
  if (call.missed === null) return h("span", { className: "dim" }, "none");
  if (!call.missed.length) return h("span", { className: "good" }, "✓ kept");
  return h("span", { className: "bad" }, `✕ ${call.missed.map((part) => MISSED[part]).join(", ")}`);
}

function why(call) {
  const judged = `${call.source}: ${call.reasons.map(words).join(" + ")}`;
  return call.placement ? `${judged} → ${words(call.placement)}` : judged;
}

const words = (name) => name.replaceAll("_", " ");

function rows(call, fresh) {
  const button = h("button", { type: "button", className: "open", "aria-expanded": "false" }, clock(call.time_s));
  const row = h("tr", { className: fresh ? "fresh" : "", data: { number: call.number } },
    h("td", {}, button),
    h("td", {}, className(call.class)),
    h("td", {}, call.backend || h("span", { className: "dim" }, "none")),
    h("td", { className: "reason" }, why(call)),
    h("td", {}, call.model || DASH),
    ...[call.queue_s < 0.0005 ? "0" : seconds(call.queue_s), seconds(call.ttft_s), seconds(call.tpot_s), seconds(call.complete_s), call.output_tokens === null ? DASH : count(call.output_tokens)]
      .map((value) => h("td", { className: "n" }, value)),
    h("td", {}, promise(call)));
  const toggle = () => {
    const shown = row.nextElementSibling?.classList.contains("more") && row.nextElementSibling.dataset.of === `${call.number}`;
    button.setAttribute("aria-expanded", `${!shown}`);
    if (shown) {
      open.delete(call.number);
      row.nextElementSibling.remove();
    } else {
      open.add(call.number);
      row.after(detail(call));
    }
  };
  button.addEventListener("click", toggle);
  if (!open.has(call.number)) return [row];
  button.setAttribute("aria-expanded", "true");
  return [row, detail(call)];
}

/** A time as it was, and as it was expected when the call was sent. */
function against(call, name) {
  return seconds(call[name]) + (call.predicted && call[name] !== null ? `, predicted ${seconds(call.predicted[name])}` : "");
}

function detail(call) {
  const pairs = [
    ["Request id", call.id], ["API", words(call.surface) + (call.stream ? ", streamed" : "")], ["Client key", call.key || "none"],
    ["Class", `${call.class}, by ${call.source}, ${Math.round(100 * call.confidence)} % sure`],
    ["Because", call.reasons.map(words).join(", ")],
    ["Placed", call.placement ? words(call.placement) : "nowhere"],
    ["Deciding took", seconds(call.decide_s)], ["In line", seconds(call.queue_s)], ["First token", against(call, "ttft_s")],
    ["A token", against(call, "tpot_s")], ["Whole answer", against(call, "complete_s")],
    ["Prompt tokens", call.prompt_tokens === null ? "not told" : `${count(call.prompt_tokens)}${call.cached_tokens ? `, ${count(call.cached_tokens)} from cache` : ""}`],
    ["Output tokens", call.output_tokens === null ? "not told" : count(call.output_tokens) + (call.expected_tokens ? `, expected ${call.expected_tokens[0]} to ${call.expected_tokens[1]}` : "")],
    ["Outcome", `${words(call.outcome)} (${call.status || "no status"})${call.retries ? `, ${call.retries} retried` : ""}`],
  ];
  const list = h("dl", { className: "detail" }, ...pairs.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
  const cell = h("td", { colSpan: 11 }, list);
  if (call.considered.length) cell.append(h("h3", {}, "What was to be expected there"), considered(call.considered, call.backend));
  return h("tr", { className: "more", data: { of: call.number } }, cell);
}

/** What each backend was expected to give, at the moment of the decision; `chosen` is the one that got the call. */
export function considered(entries, chosen) {
  const now = entries.some((each) => each.usable !== undefined);
  const head = ["Backend", ...(now ? ["Ours", "Others", "Free", "In its cache"] : []), "First token", "A token", "Whole answer", "Keeps promise", ""];
  return h("table", { className: "considered" },
    h("thead", {}, h("tr", {}, ...head.map((name, index) => h("th", { scope: "col", className: index && index < head.length - 1 ? "n" : "" }, name)))),
    h("tbody", {}, ...entries.map((each) => {
      const seen = each.predicted ?? {};
      const state = now ? [count(each.own), count(each.foreign), each.free === null ? "no limit" : count(each.free), each.cached_tokens ? `${count(each.cached_tokens)} tokens` : DASH] : [];
      const cells = [...(each.usable === false ? state.map(() => DASH) : state), seconds(seen.ttft_s), seconds(seen.tpot_s), seconds(seen.complete_s),
        seen.keeps_promise_0_1 === undefined ? DASH : percent(seen.keeps_promise_0_1)];
      return h("tr", {}, h("th", { scope: "row" }, each.backend), ...cells.map((cell) => h("td", { className: "n" }, cell)),
        h("td", { className: "dim" }, each.backend === chosen ? "← chosen" : each.why ?? ""));
    })));
}
