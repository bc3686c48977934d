// Talks to the admin port. The key, if one is needed, stays in this tab's session and goes along as a header, so no page
// of another origin can use it.

import { $, text } from "./dom.js";

const KEY = "twolane-admin-key";
let asking = null;

function headers(more = {}) {
  const key = sessionStorage.getItem(KEY);
  return key ? { ...more, Authorization: `Bearer ${key}` } : more;
}

/** The answer to a request, after the key was asked for if that was needed. */
export async function request(path, options = {}) {
  for (;;) {
    const answer = await fetch(path, { ...options, headers: headers(options.headers), cache: "no-store" });
    if (answer.status !== 401) return answer;
    await login(sessionStorage.getItem(KEY) ? "That was not the key." : "");
  }
}

/** JSON of a request. Throws an Error with the router's own words where it was refused. */
export async function json(path, options = {}) {
  const answer = await request(path, options);
  const document = await answer.json();
  if (!answer.ok && document.error) throw new Error(document.error.message);
  return document;
}

export const post = (path, body = "") => json(path, { method: "POST", body, headers: { "Content-Type": "application/json" } });

function login(problem) {
  sessionStorage.removeItem(KEY);
  asking ??= new Promise((resolve) => {
    const dialog = $("login");
    text($("login-problem"), problem);
    $("login-key").value = "";
    dialog.addEventListener("close", () => {
      asking = null;
      const key = $("login-key").value.trim();
      if (key) sessionStorage.setItem(KEY, key);
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}

/** Server-sent events over fetch, which can send a key where EventSource cannot. Returns a function that ends them. */
export function listen(path, onEvent, onState) {
  let ended = false;
  let abort = null;
  let pause_ms = 500;

  async function once() {
    abort = new AbortController();
    const answer = await request(path, { signal: abort.signal, headers: { Accept: "text/event-stream" } });
    if (!answer.ok) throw new Error((await answer.json()).error?.message ?? `status ${answer.status}`);
    onState("live", "");
    pause_ms = 500;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) {
        const found = /^event: (.*)\ndata: (.*)$/s.exec(event);
        if (found) onEvent(found[1], JSON.parse(found[2]));
      }
    }
  }

  (async () => {
    while (!ended) {
      try {
        await once();
      } catch (error) {
        if (!ended) onState("lost", error.message);
      }
      if (ended) return;
      onState("lost", "the router does not answer; trying again");
      await new Promise((resolve) => setTimeout(resolve, pause_ms));
      pause_ms = Math.min(10000, pause_ms * 2);
    }
  })();
  return () => {
    ended = true;
    abort?.abort();
  };
}
