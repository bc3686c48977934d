// The lanes: each backend with its slots, what runs and waits there, how fast it is, how it is, and its switch.

import { post } from "./api.js";
import { $, count, DASH, h, keyed, percent, plural, rate, seconds, text } from "./dom.js";

const MOST_SLOTS = 64;
const LANES = { latency: "first token soon", throughput: "many at once" };
const CLASSES = ["ttft", "mixed", "throughput"];

export function drawLanes(state) {
  const lanes = Object.keys(LANES).map((name) => ({ name, backends: state.backends.filter((each) => each.lane === name) }));
  keyed($("lanes"), lanes.filter((lane) => lane.backends.length), (lane) => lane.name, makeLane);
}

function makeLane(lane) {
  const list = h("div");
  const sum = h("span", { className: "dim" });
  const node = h("div", { className: "lane" }, h("h3", {}, lane.name, sum), list);
  return {
    node,
    update(now) {
      const speed = now.backends.reduce((total, each) => total + each.tokens_per_s, 0);
      text(sum, `${LANES[now.name]} · ${rate(speed)} tokens/s`);
      keyed(list, now.backends, (each) => each.name, makeBackend);
    },
  };
}

function makeBackend(first) {
  const health = h("span", { className: "health" });
  const why = h("span", { className: "why" });
  const engine = h("div", { className: "engine" });
  const slots = h("div", { className: "slots", role: "img" });
  const counts = h("div", {});
  const facts = h("div", { className: "facts" });
  const button = h("button", { type: "button", className: "quiet" });
  const who = h("div", { className: "who" }, h("div", { className: "name" }, first.name), engine);
  const node = h("div", { className: "backend", data: { backend: first.name } },
    who,
    h("div", { className: "load" }, slots, counts),
    facts,
    h("div", { className: "side" }, health, button));
  who.append(why);
  let now = first;
  button.addEventListener("click", () => toggle(now, button));
  return {
    node,
    update(next) {
      now = next;
      const state = now.drained ? "drained" : now.health;
      health.dataset.state = state;
      text(health, state);
      text(why, now.drained ? "takes no new calls" : now.health === "up" ? "" : now.why);
      text(engine, [now.engine, now.version].filter(Boolean).join(" "));
      drawSlots(slots, now);
      text(counts, words(now));
      drawFacts(facts, now);
      text(button, now.drained ? "Put back" : "Drain");
      button.setAttribute("aria-label", `${button.textContent} ${now.name}`);
    },
  };
}

/** What each slot does: our calls by class, calls of others, free ones; a dashed edge where there are more than slots. */
function drawSlots(node, now) {
  const kinds = CLASSES.flatMap((name) => Array(now.own_by_class[name] ?? 0).fill(name));
  kinds.push(...Array(Math.round(now.foreign)).fill("foreign"));
  const slots = now.slots ?? 0;
  const shown = Math.min(MOST_SLOTS, Math.max(slots, kinds.length));
  const wanted = Array.from({ length: shown }, (_, index) => `slot ${kinds[index] ?? ""}${slots && index >= slots ? " over" : ""}`.trim());
  while (node.children.length > wanted.length) node.lastElementChild.remove();
  wanted.forEach((name, index) => {
    const slot = node.children[index] ?? node.appendChild(h("i"));
    if (slot.className !== name) slot.className = name;
  });
  node.setAttribute("aria-label", words(now));
  node.hidden = !shown;
}

function words(now) {
  const busy = CLASSES.filter((name) => now.own_by_class[name]).map((name) => `${now.own_by_class[name]} ${name}`);
  if (now.foreign >= 0.5) busy.push(`${Math.round(now.foreign)} of other clients`);
  const limit = now.slots === null ? "no limit known" : `${plural(now.slots, "slot")}`;
  return `${busy.length ? busy.join(", ") : "idle"} · ${limit}`;
}

function drawFacts(node, now) {
  const facts = [
    ["tokens_per_s", "now", `${rate(now.tokens_per_s)} tokens/s`],
    ["queue", "in its own queue", now.waiting === null ? DASH : count(now.waiting)],
    ["each", "one answer", now.pace.answers ? `${rate(now.pace.tokens_per_s_each)} tokens/s` : "not measured yet"],
    ["prefill", "prompts", now.pace.answers ? `${count(now.pace.prefill_tokens_per_s)} tokens/s` : null],
    ["work", "prefill ahead", now.work.prefilling ? `${seconds(now.work.prefill_s)} of ${plural(now.work.prefilling, "call")}` : null],
    ["cache", "cache in use", now.cache_used_0_1 === null ? null : percent(now.cache_used_0_1)],
    ["served", "served", count(now.dispatched)],
  ].filter((fact) => fact[2] !== null);
  const share = now.work.prefilling + now.work.decoding;
  if (share >= 1) facts.push(["share", "prefill | decode", now.work.prefilling / share]);
  keyed(node, facts, (fact) => fact[0], ([name, label]) => {
    const value = h("b");
    const bar = name === "share" ? h("span", { className: "share" }, h("i")) : "";
    return {
      node: h("span", {}, bar, bar && " ", value, ` ${label}`),
      update([, , shown]) {
        if (!bar) return text(value, shown);
        bar.firstChild.style.width = percent(shown);
        text(value, `${Math.round(100 * shown)} | ${100 - Math.round(100 * shown)} %`);
      },
    };
  });
}

async function toggle(now, button) {
  if (!now.drained && !(await confirmed(now))) return;
  button.disabled = true;
  try {
    await post(`backends/${encodeURIComponent(now.name)}/${now.drained ? "undrain" : "drain"}`);
  } catch (error) {
    text($("status"), error.message);
  } finally {
    button.disabled = false;
    button.focus();
  }
}

function confirmed(now) {
  const dialog = $("confirm");
  text($("confirm-title"), `Drain ${now.name}?`);
  text($("confirm-text"),
    `It gets no new calls. The ${plural(now.own, "call")} running there go on to their end. ` +
    "A reload of the settings leaves it drained; a restart does not. Calls that only it can serve are answered 503.");
  dialog.showModal();
  const over = new AbortController();
  const { signal } = over;
  return new Promise((resolve) => {
    const answer = (yes) => { over.abort(); resolve(yes); };
    dialog.querySelector("form").addEventListener("submit", ({ submitter }) => answer(submitter.value === "yes"), { signal });
    // Escape. `close` is told late, so it may be that of the question before, while this one is still open.
    dialog.addEventListener("close", () => dialog.open || answer(false), { signal });
  });
}
