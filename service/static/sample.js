// An instance that satisfies a schema, from its own examples and defaults where it has them.

const DEEPEST = 12;

export function refName(schema) {
  return schema.$ref.split("/").at(-1);
}

// `schemas` are those that the schema refers to, by name.
export function sample(schema, schemas, depth = 0) {
  if (depth > DEEPEST) return null;
  const inside = (other) => sample(other, schemas, depth + 1);
  // What a field says of itself comes before what its type says.
  if (schema.examples?.length) return schema.examples[0];
  if (schema.default !== undefined && schema.default !== null) return schema.default;
  if (schema.const !== undefined) return schema.const;
  if (schema.$ref) return inside(schemas[refName(schema)]);
  if (schema.enum) return schema.enum[0];
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices) return inside(choices[0]);
  if (schema.prefixItems) return schema.prefixItems.map(inside);
  if (schema.type === "array") return schema.minItems ? [inside(schema.items)] : [];
  if (schema.type === "object") {
    return Object.fromEntries(
      Object.entries(schema.properties ?? {})
        .filter(([field]) => schema.required?.includes(field))
        .map(([field, one]) => [field, inside(one)]),
    );
  }
  return { string: "", number: 0, integer: 0, boolean: false }[schema.type] ?? null;
}
