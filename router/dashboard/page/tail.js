// The live tail of decisions: why did this go there? Newest first; a row opens to all that is known of its call.

import { $, className, clock, count, DASH, h, seconds, text } from "./dom.js";

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

function detail(call) {
  const pairs = [
    ["Request id", call.id], ["API", words(call.surface) + (call.stream ? ", streamed" : "")], ["Client key", call.key || "none"],
    ["Class", `${call.class}, by ${call.source}, ${Math.round(100 * call.confidence)} % sure`],
    ["Because", call.reasons.map(words).join(", ")],
    ["Placed", call.placement ? words(call.placement) : "nowhere"],
    ["Deciding took", seconds(call.decide_s)], ["In line", seconds(call.queue_s)], ["First token", seconds(call.ttft_s)],
    ["A token", seconds(call.tpot_s)], ["Whole answer", seconds(call.complete_s)],
    ["Prompt tokens", call.prompt_tokens === null ? "not told" : `${count(call.prompt_tokens)}${call.cached_tokens ? `, ${count(call.cached_tokens)} from cache` : ""}`],
    ["Output tokens", call.output_tokens === null ? "not told" : count(call.output_tokens) + (call.expected_tokens ? `, expected ${call.expected_tokens[0]} to ${call.expected_tokens[1]}` : "")],
    ["Outcome", `${words(call.outcome)} (${call.status || "no status"})${call.retries ? `, ${call.retries} retried` : ""}`],
  ];
  const list = h("dl", { className: "detail" }, ...pairs.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
  const cell = h("td", { colSpan: 11 }, list);
  if (call.considered?.length) cell.append(considered(call.considered));
  return h("tr", { className: "more", data: { of: call.number } }, cell);
}

/** What each backend was expected to take. */
export function considered(entries) {
  const head = ["Backend", "Usable", "Ours", "Others", "Free", "First token", "Whole answer", ""];
  return h("table", {},
    h("thead", {}, h("tr", {}, ...head.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...entries.map((each) => h("tr", {},
      h("th", { scope: "row" }, each.backend), h("td", {}, each.usable === false ? "no" : "yes"),
      h("td", {}, count(each.own)), h("td", {}, count(each.foreign)), h("td", {}, each.free === null && each.usable ? "no limit" : count(each.free)),
      h("td", {}, seconds(each.first_token_s)), h("td", {}, seconds(each.complete_s)),
      h("td", { className: "dim" }, each.why ?? "")))));
}
