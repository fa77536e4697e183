// The API's page: renders /openapi.json, so that it needs nothing from elsewhere.

import { refName, sample } from "./sample.js";

const GROUPS = {
  forecast: "Forecasts",
  store: "Stored cells",
  model: "Model",
  operations: "Operations",
};

const documentation = await (await fetch("openapi.json")).json();
document.getElementById("version").textContent = documentation.info.version;
document.getElementById("about").textContent = documentation.info.description;
showRoutes();
showBodies();
openTarget();
addEventListener("hashchange", openTarget);

// A link to a part opens it.
function openTarget() {
  const part = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!part) return;
  part.open = true;
  part.scrollIntoView();
}

function showRoutes() {
  const groups = new Map();
  for (const [path, operations] of Object.entries(documentation.paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      const group = operation.tags?.[0] ?? "other";
      groups.set(group, [...(groups.get(group) ?? []), route(path, method, operation)]);
    }
  }
  const host = document.getElementById("routes");
  for (const [group, routes] of groups) host.append(make("h2", GROUPS[group] ?? group), ...routes);
}

function route(path, method, operation) {
  const panel = make("details", "", "panel route");
  panel.id = `${method} ${path}`;
  const summary = make("summary", "");
  summary.append(
    make("span", method.toUpperCase(), "method"),
    make("code", path),
    make("span", operation.summary, "quiet"),
  );
  const content = make("div", "");
  content.append(make("p", operation.description));
  if (operation.parameters?.length) {
    content.append(make("h3", "Parameters"), parameters(operation.parameters));
  }
  if (operation.requestBody) {
    content.append(make("h3", "Body"), make("p", operation.requestBody.description ?? ""));
    for (const [media, { schema }] of Object.entries(operation.requestBody.content)) {
      content.append(form(media, schema));
      if (schema.$ref) content.append(example(schema));
    }
  }
  content.append(make("h3", "Answers"), answers(operation.responses));
  panel.append(summary, content);
  return panel;
}

function parameters(list) {
  return table(
    ["Name", "In", "Type", "Meaning"],
    list.map((one) => [
      code(one.name),
      one.required ? `${one.in}, required` : one.in,
      type(one.schema),
      one.description ?? "",
    ]),
  );
}

function answers(responses) {
  return table(
    ["Status", "Meaning", "Content"],
    Object.entries(responses).map(([status, response]) => {
      const forms = Object.entries(response.content ?? {});
      const host = document.createElement("span");
      host.append(...forms.map(([media, { schema }]) => form(media, schema)));
      return [status, response.description, host];
    }),
  );
}

function showBodies() {
  const host = document.getElementById("bodies");
  for (const [name, schema] of Object.entries(documentation.components.schemas)) {
    const panel = make("details", "", "panel route");
    panel.id = name;
    const summary = make("summary", "");
    summary.append(make("code", name), make("span", schema.description ?? "", "quiet"));
    const content = make("div", "");
    content.append(
      table(
        ["Field", "Type", "Meaning"],
        Object.entries(schema.properties ?? {}).map(([field, one]) => [
          code(schema.required?.includes(field) ? field : `${field}?`),
          type(one),
          one.description ?? "",
        ]),
      ),
    );
    panel.append(summary, content);
    host.append(panel);
  }
}

// One of the forms of a body or an answer: its media type, and what it is.
function form(media, schema) {
  const host = make("p", "");
  host.append(code(media), " ", schema.$ref ? reference(schema) : (schema.description ?? ""));
  return host;
}

function example(schema) {
  return make("pre", JSON.stringify(sample(schema, documentation.components.schemas), null, 2));
}

function type(schema) {
  if (schema.$ref) return reference(schema);
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices) return joined(choices.map(type), " or ");
  if (schema.type === "array" && schema.items) return joined(["list of ", type(schema.items)], "");
  if (schema.type === "object" && typeof schema.additionalProperties === "object") {
    return joined(["map to ", type(schema.additionalProperties)], "");
  }
  return schema.format ? `${schema.type} (${schema.format})` : (schema.type ?? "any");
}

function reference(schema) {
  const link = make("a", refName(schema));
  link.href = `#${refName(schema)}`;
  return link;
}

function joined(parts, separator) {
  const host = document.createElement("span");
  parts.forEach((part, i) => host.append(...(i && separator ? [separator] : []), part));
  return host;
}

function table(names, rows) {
  const made = document.createElement("table");
  const head = document.createElement("tr");
  head.append(...names.map((name) => make("th", name)));
  made.append(head);
  for (const cells of rows) {
    const row = document.createElement("tr");
    for (const cell of cells) {
      const slot = document.createElement("td");
      slot.append(cell);
      row.append(slot);
    }
    made.append(row);
  }
  return made;
}

function code(text) {
  return make("code", text);
}

function make(name, content, className = "") {
  const made = document.createElement(name);
  made.textContent = content;
  if (className) made.className = className;
  return made;
}
