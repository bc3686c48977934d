// Small helpers: elements, lists of rows that keep their nodes (and so focus), numbers as people read them.

export const $ = (id) => document.getElementById(id);

/** An element; `props` are properties, or attributes where the name has a dash. Text is never parsed as HTML. */
export function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === "data") Object.assign(node.dataset, value);
    else if (name.includes("-") || name === "scope" || name === "role") node.setAttribute(name, value);
    else node[name] = value;
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

export function text(node, value) {
  if (node.textContent !== value) node.textContent = value;
}

/** Children of `parent`, one for each item, made once and updated in place. `make(item)` gives {node, update(item)}. */
export function keyed(parent, items, key, make) {
  const before = parent._rows ?? new Map();
  const rows = new Map();
  let at = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    const row = before.get(name) ?? make(item);
    row.update?.(item);
    rows.set(name, row);
    if (row.node === at) at = at.nextElementSibling;
    else parent.insertBefore(row.node, at);
  }
  for (const [name, row] of before) if (!rows.has(name)) row.node.remove();
  parent._rows = rows;
}

/** A table body of plain cells: `cells(item)` gives [content, class] or content for each column, the first a heading. */
export function table(body, items, key, cells) {
  keyed(body, items, key, (item) => {
    const node = h("tr");
    return {
      node,
      update(now) {
        cells(now).forEach((cell, index) => {
          const [content, name = ""] = Array.isArray(cell) ? cell : [cell];
          let td = node.children[index];
          if (!td) node.append((td = h(index ? "td" : "th", index ? {} : { scope: "row" })));
          if (td.className !== name) td.className = name;
          if (content instanceof Node) td.replaceChildren(content);
          else text(td, content ?? "");
        });
      },
    };
  });
}

export function className(name) {
  return h("span", { className: "class-name", data: { class: name } }, name);
}

// --- numbers

export const DASH = "–";

export function seconds(value) {
  if (value === null || value === undefined) return DASH;
  if (value === 0) return "0";
  if (value < 0.0995) return `${(value * 1000).toFixed(value < 0.00995 ? 1 : 0)}\u00a0ms`;
  if (value < 0.9995) return `${Math.round(value * 1000)}\u00a0ms`;
  if (value < 99.5) return `${value.toFixed(value < 9.995 ? 2 : 1).replace(/\.?0+$/, "")}\u00a0s`;
  if (value < 120) return `${Math.round(value)}\u00a0s`;
  return value < 5400 ? `${Math.round(value / 60)}\u00a0min` : `${(value / 3600).toFixed(1)}\u00a0h`;
}

export function count(value) {
  if (value === null || value === undefined) return DASH;
  if (value < 10000) return `${Math.round(value)}`;
  return value < 1e6 ? `${(value / 1e3).toFixed(value < 1e5 ? 1 : 0)}\u00a0k` : `${(value / 1e6).toFixed(1)}\u00a0M`;
}

export function rate(value) {
  if (value === null || value === undefined) return DASH;
  return value < 10 ? value.toFixed(value < 0.095 && value > 0 ? 2 : 1) : count(value);
}

export function percent(share) {
  if (share === null || share === undefined) return DASH;
  const value = 100 * share;
  // 94.96 % must not read as 95.0 %, which would be the other colour.
  return `${(Math.floor(value * 10) / 10).toFixed(value >= 99.95 || value === 0 ? 0 : 1)}\u00a0%`;
}

export function clock(unix_s) {
  return new Date(unix_s * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
}

export const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;
