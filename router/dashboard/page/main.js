// The page: keeps what the router tells, and has each part drawn from it.

import { listen } from "./api.js";
import { drawCharts, themeCharts } from "./charts.js";
import { drawClients, drawLine, drawPipelines, drawPromises, drawVerdict } from "./figures.js";
import { $, text } from "./dom.js";
import { drawExplain, startExplain } from "./explain.js";
import { drawLanes } from "./lanes.js";
import { addCalls, startTail } from "./tail.js";
import { openWhatIf } from "./whatif.js";

const HIDDEN_MS = 20000;
const state = { series: new Map() };
let stop = null;

function take(name, document) {
  const { series, calls, ...rest } = document;
  if (name === "all") state.series.clear();
  Object.assign(state, rest);
  for (const point of series) state.series.set(point[0], point);
  const oldest = state.time_s - 3700;
  for (const start of state.series.keys()) {
    if (start >= oldest) break;
    state.series.delete(start);
  }
  addCalls(calls, name === "all");
  draw();
}

function draw() {
  text($("version"), state.version);
  drawVerdict(state);
  drawLanes(state);
  drawPromises(state);
  drawLine(state);
  drawPipelines(state);
  drawClients(state);
  drawCharts(state);
  drawExplain(state);
}

function connect() {
  stop ??= listen("events", take, (now, why) => {
    const status = $("status");
    status.toggleAttribute("data-live", now === "live");
    status.toggleAttribute("data-lost", now === "lost");
    text(status, now === "live" ? "live" : why);
  });
}

function disconnect() {
  stop?.();
  stop = null;
}

// A tab that nobody looks at costs the router nothing.
let hidden = null;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hidden);
  if (document.hidden) hidden = setTimeout(disconnect, HIDDEN_MS);
  else connect();
});

// --- views

function show() {
  const wanted = location.hash.slice(1) || "overview";
  for (const link of document.querySelectorAll("nav a")) {
    const chosen = link.dataset.view === wanted;
    if (chosen) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    if (link.dataset.view) $(link.dataset.view).hidden = !chosen;
  }
  if (![...document.querySelectorAll("nav a[aria-current]")].length) location.hash = "overview";
  window.scrollTo(0, 0);
  if (wanted === "overview" && state.version) draw();
  if (wanted === "what-if") openWhatIf();
}

window.addEventListener("hashchange", show);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  $("main").focus();
});

// --- light and dark

const THEMES = ["system", "light", "dark"];
const prefersDark = matchMedia("(prefers-color-scheme: dark)");

function theme() {
  const chosen = localStorage.getItem("twolane-theme") ?? "system";
  const dark = chosen === "dark" || (chosen === "system" && prefersDark.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  text($("theme"), `Theme: ${chosen}`);
  themeCharts();
  if (state.version) drawCharts(state);
}

$("theme").addEventListener("click", () => {
  const chosen = localStorage.getItem("twolane-theme") ?? "system";
  localStorage.setItem("twolane-theme", THEMES[(THEMES.indexOf(chosen) + 1) % THEMES.length]);
  theme();
});
prefersDark.addEventListener("change", theme);

for (const id of ["by", "window"]) $(id).addEventListener("change", () => drawClients(state));
for (const id of ["unit", "only", "range"]) $(id).addEventListener("change", () => drawCharts(state));

theme();
startTail();
startExplain();
show();
connect();
