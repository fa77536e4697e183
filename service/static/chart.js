// A fan chart: what was measured, then the quantiles of what comes. Draws SVG, keeps no state.

const NAMESPACE = "http://www.w3.org/2000/svg";
const WIDTH = 960;
const HEIGHT = 340;
const MARGIN = { top: 14, right: 40, bottom: 30, left: 58 };
const TICK_STEPS_MS = [
  1e3, 5e3, 15e3, 6e4, 3e5, 9e5, 18e5, 36e5, 108e5, 216e5, 432e5, 864e5, 1728e5, 6048e5, 24192e5,
];

/**
 * Draw one KPI.
 * @param {HTMLElement} host Replaced content.
 * @param {{t: number, v: number|null}[]} measured Samples at the end of their period (ms).
 * @param {{t: number, q: Object<string, number|null>}[]} expected Quantiles by level.
 */
export function drawFan(host, measured, expected) {
  const known = measured.filter((point) => point.v !== null);
  const levels = expected.length ? Object.keys(expected[0].q).sort((a, b) => a - b) : [];
  const values = known.map((point) => point.v);
  for (const point of expected) {
    values.push(...Object.values(point.q).filter((value) => value !== null));
  }
  if (!values.length) {
    host.replaceChildren(text("p", "No value is known of this KPI, and nothing can be said of it."));
    return;
  }
  const fan = joined(measured, expected, levels);
  const x = scale(
    [measured[0]?.t ?? expected[0].t, (expected.at(-1) ?? measured.at(-1)).t],
    [MARGIN.left, WIDTH - MARGIN.right],
  );
  const [low, high] = niceRange(Math.min(...values), Math.max(...values));
  const y = scale([low, high], [HEIGHT - MARGIN.bottom, MARGIN.top]);
  const svg = node("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
  svg.append(axes(x, y, low, high));
  for (const [lower, upper, name] of bands(levels)) {
    svg.append(node("path", { class: name, d: bandPath(fan, lower, upper, x, y) }));
  }
  svg.append(node("path", { class: "chart-measured", d: linePath(measured, (p) => p.v, x, y) }));
  for (const point of lone(measured)) {
    svg.append(node("circle", { class: "chart-dot", cx: x(point.t), cy: y(point.v), r: 2 }));
  }
  if (levels.length) {
    const median = levels[Math.floor(levels.length / 2)];
    svg.append(
      node("path", { class: "chart-median", d: linePath(fan, (p) => p.q[median], x, y) }),
    );
  }
  if (measured.length && expected.length) {
    const at = x(measured.at(-1).t);
    svg.append(
      node("line", { class: "chart-now", x1: at, x2: at, y1: MARGIN.top, y2: y(low) }),
    );
  }
  follow(svg, [...measured, ...expected], levels, x);
  host.replaceChildren(svg);
}

/** Numbers as people read them: three or four digits, no trailing zeros. */
export function number(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential(2);
  return String(Number(value.toPrecision(size >= 1000 ? 5 : 4)));
}

/** A stamp in the reader's own time zone. */
export function moment(ms, withDate = true) {
  const date = new Date(ms);
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
  if (!withDate) return time;
  return `${date.toLocaleDateString([], { day: "numeric", month: "short" })} ${time}`;
}

// The fan opens from the last measured value, where it is known.
function joined(measured, expected, levels) {
  const last = measured.at(-1);
  if (!last || last.v === null || !expected.length) return expected;
  return [{ t: last.t, q: Object.fromEntries(levels.map((level) => [level, last.v])) }, ...expected];
}

function bands(levels) {
  const found = [];
  const names = ["chart-outer", "chart-inner"];
  for (let i = 0; i < Math.floor(levels.length / 2); i += 1) {
    found.push([levels[i], levels[levels.length - 1 - i], names[Math.min(i, 1)]]);
  }
  return found;
}

function axes(x, y, low, high) {
  const group = node("g", {});
  for (const value of ticks(low, high)) {
    const at = y(value);
    group.append(
      node("line", {
        class: "chart-grid", x1: MARGIN.left, x2: WIDTH - MARGIN.right, y1: at, y2: at,
      }),
      label(number(value), { x: MARGIN.left - 8, y: at + 4, "text-anchor": "end" }),
    );
  }
  const [first, last] = x.domain;
  const step =
    TICK_STEPS_MS.find((size) => (last - first) / size <= 9) ?? TICK_STEPS_MS.at(-1);
  const shift = new Date(first).getTimezoneOffset() * 60000;
  for (let t = Math.ceil((first - shift) / step) * step + shift; t <= last; t += step) {
    const text = step >= 864e5 ? moment(t).split(" ").slice(0, 2).join(" ") : moment(t, atMidnight(t));
    group.append(
      node("line", { class: "chart-grid", x1: x(t), x2: x(t), y1: y(low), y2: y(low) + 5 }),
      label(text, { x: x(t), y: HEIGHT - 8, "text-anchor": "middle" }),
    );
  }
  return group;
}

function atMidnight(ms) {
  const date = new Date(ms);
  return date.getHours() === 0 && date.getMinutes() === 0;
}

function follow(svg, points, levels, x) {
  const cursor = node("line", { class: "chart-cursor", y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom });
  const box = node("rect", { class: "chart-note", rx: 6, width: 168, height: 44, y: MARGIN.top });
  const lines = [0, 1].map((row) => node("text", { class: "chart-text", y: MARGIN.top + 18 + 18 * row }));
  const group = node("g", { visibility: "hidden" });
  group.append(cursor, box, ...lines);
  svg.append(group);
  svg.addEventListener("pointerleave", () => group.setAttribute("visibility", "hidden"));
  svg.addEventListener("pointermove", (event) => {
    const frame = svg.getBoundingClientRect();
    const at = ((event.clientX - frame.left) / frame.width) * WIDTH;
    const point = points.reduce((a, b) => (Math.abs(x(b.t) - at) < Math.abs(x(a.t) - at) ? b : a));
    const left = Math.min(Math.max(x(point.t) + 10, MARGIN.left), WIDTH - MARGIN.right - 168);
    cursor.setAttribute("x1", x(point.t));
    cursor.setAttribute("x2", x(point.t));
    box.setAttribute("x", left);
    lines.forEach((line) => line.setAttribute("x", left + 10));
    lines[0].textContent = moment(point.t);
    lines[1].textContent = point.q ? spread(point.q, levels) : `measured ${number(point.v)}`;
    group.setAttribute("visibility", "visible");
  });
}

function spread(quantiles, levels) {
  const median = levels[Math.floor(levels.length / 2)];
  return `${number(quantiles[median])}  (${number(quantiles[levels[0]])} – ${number(quantiles[levels.at(-1)])})`;
}

function linePath(points, value, x, y) {
  let path = "";
  let pen = "M";
  for (const point of points) {
    const v = value(point);
    if (v === null || v === undefined) {
      pen = "M";
      continue;
    }
    path += `${pen}${x(point.t).toFixed(1)} ${y(v).toFixed(1)}`;
    pen = "L";
  }
  return path;
}

function bandPath(points, lower, upper, x, y) {
  const usable = points.filter((p) => p.q[lower] !== null && p.q[upper] !== null);
  if (!usable.length) return "";
  const over = usable.map((p) => `${x(p.t).toFixed(1)} ${y(p.q[upper]).toFixed(1)}`);
  const under = usable.map((p) => `${x(p.t).toFixed(1)} ${y(p.q[lower]).toFixed(1)}`).reverse();
  return `M${over.join("L")}L${under.join("L")}Z`;
}

// A sample between two gaps has no line; it gets a dot.
function lone(points) {
  return points.filter(
    (point, i) =>
      point.v !== null && (points[i - 1]?.v ?? null) === null && (points[i + 1]?.v ?? null) === null,
  );
}

function niceRange(low, high) {
  if (low === high) return [low - (Math.abs(low) || 1) * 0.5, high + (Math.abs(high) || 1) * 0.5];
  const room = (high - low) * 0.06;
  return [low >= 0 && low - room < 0 ? 0 : low - room, high + room];
}

function ticks(low, high) {
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((size) => size >= rough);
  const found = [];
  for (let v = Math.ceil(low / step) * step; v <= high; v += step) found.push(v);
  return found;
}

function scale(domain, range) {
  const [a, b] = domain;
  const factor = b === a ? 0 : (range[1] - range[0]) / (b - a);
  const map = (value) => range[0] + (value - a) * factor;
  map.domain = domain;
  return map;
}

function label(content, attributes) {
  const made = node("text", { class: "chart-label", ...attributes });
  made.textContent = content;
  return made;
}

function node(name, attributes) {
  const made = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function text(name, content) {
  const made = document.createElement(name);
  made.textContent = content;
  return made;
}
