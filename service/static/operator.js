// The operator's page: cells on the left, one cell's history and forecast on the right.

import { drawFan, moment, number } from "./chart.js";

const REFRESH_MS = 5000;
const PAGE_SIZE = 200;
const LEVELS = [0.1, 0.25, 0.5, 0.75, 0.9];
const HISTORIES = { "1 day": 86400, "3 days": 259200, "1 week": 604800, "2 weeks": 1209600 };
const HORIZONS = [6, 12, 24, 48, 96, 192];

const page = Object.fromEntries(
  [...document.querySelectorAll("[id]")].map((element) => [element.id, element]),
);
const state = { cells: [], next: null, cell: null, kpi: null, model: null, request: 0 };

page.find.addEventListener("input", showCells);
page.more.addEventListener("click", () => loadCells(state.next));
page.history.addEventListener("change", showForecast);
page.horizon.addEventListener("change", showForecast);
for (const [name, seconds] of Object.entries(HISTORIES)) page.history.append(new Option(name, seconds));
page.history.value = String(HISTORIES["3 days"]);

await refresh();
setInterval(refresh, REFRESH_MS);

async function refresh() {
  await showStatus();
  if (!state.model) return;
  if (state.cells.length < PAGE_SIZE) await loadCells(null);
  await showForecast();
  await showFigures();
}

async function showStatus() {
  let health;
  try {
    health = await (await fetch("readyz")).json();
  } catch {
    health = { status: "not reachable" };
  }
  page.status.textContent = health.reason ? `${health.status}: ${health.reason}` : health.status;
  page.status.className = `pill ${health.status === "ready" ? "good" : "bad"}`;
  if (health.status !== "ready" || state.model) return;
  try {
    state.model = await read("v1/model");
  } catch (error) {
    page.status.textContent = error.message;
    page.status.className = "pill bad";
    return;
  }
  page.model.textContent = `${state.model.name} ${state.model.version}`;
  page.model.title = state.model.digest;
  const longest = state.model.max_horizon;
  for (const steps of [...HORIZONS.filter((h) => h < longest), longest]) {
    page.horizon.append(new Option(`${steps} steps`, steps));
  }
  page.horizon.value = String(Math.min(24, longest));
}

async function showFigures() {
  const samples = parseMetrics(await (await fetch("metrics")).text());
  const total = (name) =>
    samples.filter((s) => s.name === name).reduce((sum, s) => sum + s.value, 0);
  const age = samples.find((s) => s.name === "rancast_data_age_seconds");
  const forecasts = total("rancast_forecasts_total");
  const late = total("rancast_latency_budget_exceeded_total");
  const figures = [
    ["Cells", number(total("rancast_store_cells"))],
    ["Age of newest sample", age ? duration(age.value) : "–"],
    ["Series forecast", number(forecasts)],
    ["Budget used, median", percent(quantile(samples, "rancast_latency_budget_used_ratio", 0.5))],
    ["Budget used, 99th percentile", percent(quantile(samples, "rancast_latency_budget_used_ratio", 0.99))],
    ["Answers too late", number(late)],
  ];
  page.figures.replaceChildren(
    ...figures.map(([name, value]) => {
      const figure = make("div", "", "figure");
      figure.append(make("b", value), make("span", name, "quiet"));
      return figure;
    }),
  );
}

async function loadCells(after) {
  const query = new URLSearchParams({ limit: PAGE_SIZE });
  if (after) query.set("after", after);
  const answer = await read(`v1/cells?${query}`);
  const shown = state.cells.map((cell) => cell.cell).join("\n");
  state.cells = after ? [...state.cells, ...answer.cells] : answer.cells;
  state.next = answer.next;
  if (!state.cell && state.cells.length) state.cell = state.cells[0];
  state.cell = state.cells.find((c) => same(c, state.cell)) ?? state.cell;
  // An unchanged list is left alone: drawing it anew would take the focus away.
  if (shown !== state.cells.map((cell) => cell.cell).join("\n")) showCells();
}

function showCells() {
  const wanted = page.find.value.trim().toLowerCase();
  const shown = state.cells.filter((cell) => cell.cell.toLowerCase().includes(wanted));
  page.cells.replaceChildren(
    ...shown.map((cell) => {
      const item = document.createElement("li");
      const button = make("button", cell.cell);
      button.type = "button";
      button.setAttribute("aria-current", same(cell, state.cell));
      button.append(make("small", `${cell.kpis.length} ${cell.kpis.length === 1 ? "KPI" : "KPIs"}, every ${duration(cell.step_seconds)}`));
      button.addEventListener("click", () => {
        state.cell = cell;
        showCells();
        showForecast();
      });
      item.append(button);
      return item;
    }),
  );
  page.more.hidden = !state.next;
}

async function showForecast() {
  const cell = state.cell;
  if (!cell) return;
  if (!cell.kpis.includes(state.kpi)) state.kpi = cell.kpis[0];
  page.title.textContent = cell.cell;
  page.span.textContent = `${moment(Date.parse(cell.first))} to ${moment(Date.parse(cell.last))}, every ${duration(cell.step_seconds)}`;
  showTabs(cell);
  // Answers may overtake each other; only the newest request may draw.
  const request = (state.request += 1);
  const [least, most] = state.model.quantile_range;
  const levels = LEVELS.filter((level) => level >= least && level <= most);
  const path = `v1/cells/${encodeURIComponent(cell.cell)}`;
  const common = { kpi: state.kpi, step_seconds: cell.step_seconds };
  const steps = Math.max(1, Math.round(page.history.value / cell.step_seconds));
  const past = new URLSearchParams({ ...common, steps: Math.min(steps, 5000) });
  const future = new URLSearchParams({
    ...common, horizon: page.horizon.value, quantiles: levels.join(","),
  });
  try {
    const [history, forecast] = await Promise.all([
      read(`${path}/samples?${past}`),
      read(`${path}/forecast?${future}`),
    ]);
    if (request === state.request) draw(history, forecast);
  } catch (error) {
    if (request === state.request) {
      page.provenance.textContent = error.message;
      page.provenance.classList.add("failure");
    }
  }
}

function draw(history, answer) {
  const forecast = answer.forecasts[0];
  const stepMs = history.step_seconds * 1000;
  const start = Date.parse(history.start);
  const measured = history.kpis[state.kpi].map((v, i) => ({ t: start + (i + 1) * stepMs, v }));
  const origin = Date.parse(forecast.start);
  const byLevel = Object.entries(forecast.kpis[state.kpi]);
  const expected = byLevel[0][1].map((_, i) => ({
    t: origin + (i + 1) * stepMs,
    q: Object.fromEntries(byLevel.map(([level, values]) => [level, values[i]])),
  }));
  drawFan(page.chart, measured, expected);
  page.legend.hidden = false;
  const { context, rung } = forecast;
  page.provenance.classList.remove("failure");
  page.provenance.textContent =
    `Rung ${rung}, from ${moment(Date.parse(context.start))} to ${moment(Date.parse(context.end))}, ` +
    `${percent(context.missing_ratio)} missing` +
    (context.age_seconds === null ? "." : `, newest sample ${duration(context.age_seconds)} old.`);
  showTable(byLevel, expected);
}

function showTable(byLevel, expected) {
  const table = document.createElement("table");
  const head = document.createElement("tr");
  head.append(make("th", "Quantile"), ...expected.slice(0, 12).map((p) => make("th", moment(p.t, false))));
  table.append(head);
  for (const [level, values] of byLevel) {
    const row = document.createElement("tr");
    row.append(make("td", level), ...values.slice(0, 12).map((value) => make("td", number(value))));
    table.append(row);
  }
  page.table.replaceChildren(table);
}

function showTabs(cell) {
  page.kpis.replaceChildren(
    ...cell.kpis.map((kpi) => {
      const tab = make("button", kpi);
      tab.type = "button";
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-selected", kpi === state.kpi);
      tab.addEventListener("click", () => {
        state.kpi = kpi;
        showForecast();
      });
      return tab;
    }),
  );
}

async function read(path) {
  const answer = await ask(path);
  const body = await answer.json();
  if (!answer.ok) throw new Error(`${body.title ?? answer.status}: ${body.detail ?? ""}`);
  return body;
}

// With the token of this tab, where the service wants one; whoever gives none is not asked again.
async function ask(path) {
  const token = sessionStorage.getItem("token");
  const answer = await fetch(path, token ? { headers: { Authorization: `Bearer ${token}` } } : {});
  if (answer.status !== 401 || state.declined) return answer;
  const given = prompt("This service asks for a token with the scope read:");
  state.declined = !given;
  if (!given) return answer;
  sessionStorage.setItem("token", given.trim());
  return ask(path);
}

function same(a, b) {
  return Boolean(a && b) && a.cell === b.cell && a.step_seconds === b.step_seconds;
}

function parseMetrics(text) {
  const samples = [];
  for (const line of text.split("\n")) {
    const parts = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!parts) continue;
    const labels = Object.fromEntries(
      [...(parts[2] ?? "").matchAll(/(\w+)="([^"]*)"/g)].map((m) => [m[1], m[2]]),
    );
    samples.push({ name: parts[1], labels, value: Number(parts[3].replace("Inf", "Infinity")) });
  }
  return samples;
}

// Linear inside the bucket, as Prometheus' histogram_quantile does it.
function quantile(samples, name, level) {
  const counts = new Map();
  for (const sample of samples.filter((s) => s.name === `${name}_bucket`)) {
    const bound = Number(sample.labels.le.replace("Inf", "Infinity"));
    counts.set(bound, (counts.get(bound) ?? 0) + sample.value);
  }
  const bounds = [...counts.keys()].sort((a, b) => a - b);
  const wanted = (counts.get(Infinity) ?? 0) * level;
  if (!wanted) return null;
  let [below, under] = [0, 0];
  for (const bound of bounds) {
    const upTo = counts.get(bound);
    if (upTo >= wanted) {
      if (bound === Infinity) return below;
      return below + ((bound - below) * (wanted - under)) / (upTo - under);
    }
    [below, under] = [bound, upTo];
  }
  return below;
}

function percent(ratio) {
  return ratio === null ? "–" : `${number(Number((ratio * 100).toFixed(1)))} %`;
}

function duration(seconds) {
  const size = Math.abs(seconds);
  if (size < 120) return `${number(Number(seconds.toFixed(1)))} s`;
  if (size < 7200) return `${number(Number((seconds / 60).toFixed(1)))} min`;
  if (size < 172800) return `${number(Number((seconds / 3600).toFixed(1)))} h`;
  return `${number(Number((seconds / 86400).toFixed(1)))} d`;
}

function make(name, content, className = "") {
  const made = document.createElement(name);
  made.textContent = content;
  if (className) made.className = className;
  return made;
}
