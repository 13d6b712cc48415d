import { assertEquals } from "../../assert.ts";
import { checkExpandedConfig, checkWrittenConfig, typeConfig } from "../../../src/plan/check/check_config.ts";
import { Findings } from "../../../src/sdk/findings.ts";
import { formatPath } from "../../../src/sdk/value_path.ts";
import type { JsonObject } from "../../../src/sdk/json.ts";

const SCHEMA: JsonObject = {
  type: "object",
  additionalProperties: false,
  required: ["url"],
  properties: {
    url: { type: "string", minLength: 3, maxLength: 9 },
    retries: { type: "integer", minimum: 0, maximum: 5 },
    share: { type: ["number", "null"], exclusiveMinimum: 0, maximum: 1 },
    on: { type: "boolean" },
    mode: { enum: ["fast", "slow", null] },
    items: { type: "array", minItems: 1, items: { anyOf: [{ type: "string" }, ITEM()] } },
    any: { description: "whatever" },
  },
};

function ITEM(): JsonObject {
  return {
    type: "object",
    additionalProperties: false,
    required: ["name"],
    properties: { name: { type: "string" }, size: { type: "integer", minimum: 1 } },
  };
}

/** Returns findings about a config with a valid `url`: `path: message (hint)`. */
function found(config: JsonObject, schema = SCHEMA): { errors: string[]; warnings: string[] } {
  const findings = new Findings();
  checkWrittenConfig({ url: "abc", ...config }, schema, ["tools", 0, "config"], findings);
  const result = ({ path, message, hint }: Findings["errors"][number]) =>
    `${formatPath(path)}: ${message}${hint === undefined ? "" : ` (${hint})`}`;
  return { errors: findings.errors.map(result), warnings: findings.warnings.map(result) };
}

Deno.test("checkWrittenConfig() accepts what the schema accepts", () => {
  const right: JsonObject[] = [
    {},
    { retries: 0, share: 1, on: false, mode: "slow", any: [{}] },
    { share: null, mode: null, retries: 5, items: ["a", { name: "b", size: 1 }] },
  ];
  for (const config of right) assertEquals(found(config), { errors: [], warnings: [] });
});

for (
  const [config, errors] of [
    [{ retries: "3" }, [
      "tools[0].config.retries: Cannot read retries: must be a whole number from 0 to 5: received text (write it without quotes)",
    ]],
    [{ retries: 6 }, [
      "tools[0].config.retries: Cannot read retries: must be a whole number from 0 to 5: received 6",
    ]],
    [{ retries: 0.5 }, [
      "tools[0].config.retries: Cannot read retries: must be a whole number from 0 to 5: received 0.5",
    ]],
    [{ share: 0 }, [
      "tools[0].config.share: Cannot read share: must be a number above 0 and of at most 1: received 0",
    ]],
    [{ on: "yes" }, ["tools[0].config.on: Cannot read on: must be true or false: received text"]],
    [{ mode: "fsat" }, [
      'tools[0].config.mode: Cannot read mode: must be one of fast, slow, null: received "fsat" (did you mean "fast"?)',
    ]],
    [{ url: "x" }, ["tools[0].config.url: Cannot read url: must have at least 3 characters: received 1"]],
    [{ url: "0123456789" }, [
      "tools[0].config.url: Cannot read url: must have at most 9 characters: received 10",
    ]],
    [{ items: [] }, ["tools[0].config.items: Cannot read items: must have at least 1 entries: received 0"]],
    [{ items: [5, { size: 0 }] }, [
      "tools[0].config.items[0]: Cannot read entry 0: must be text or an object: received 5",
      'tools[0].config.items[1]: Cannot read tools[0].config.items[1]: it must have "name" (add name)',
      "tools[0].config.items[1].size: Cannot read size: must be a whole number of at least 1: received 0",
    ]],
    [{ retrys: 1 }, [
      'tools[0].config.retrys: Cannot use key "retrys": tools[0].config has no such key (did you mean "retries"?)',
    ]],
    [{ colour: 1 }, [
      'tools[0].config.colour: Cannot use key "colour": tools[0].config has no such key (use url, retries, share, on, mode, items, any)',
    ]],
  ] as [JsonObject, string[]][]
) {
  Deno.test(`checkWrittenConfig() reports what is wrong with ${JSON.stringify(config)}`, () => {
    assertEquals(found(config), { errors, warnings: [] });
  });
}

Deno.test("checkWrittenConfig() reports missing required keys", () => {
  const findings = new Findings();
  checkWrittenConfig({}, SCHEMA, ["hooks", 1, "config"], findings);
  assertEquals(findings.errors.map(({ path, hint }) => [formatPath(path), hint]), [[
    "hooks[1].config",
    "add url",
  ]]);
});

Deno.test("checkWrittenConfig() accepts a reference for any value, but not text that only looks like one", () => {
  assertEquals(found({ retries: "${N}", on: "${ON:-true}", mode: "${M}", items: "${LIST}" }).errors, []);
  assertEquals(found({ url: "${A}", items: [{ name: "n", size: "${SIZE}" }] }).errors, []);
  for (const text of ["$${N}", "${not a name}", "${N"]) {
    assertEquals(found({ retries: text }).errors.length, 1, text);
  }
});

Deno.test("checkWrittenConfig() warns of an unknown key where the schema allows it, unless it is a misspelled one", () => {
  const open = { ...SCHEMA, additionalProperties: true };
  const { errors, warnings } = found({ colour: 1 }, open);
  assertEquals([errors, warnings.length], [[], 1]);
  assertEquals(found({ retrys: 1 }, open).errors.length, 1);
});

Deno.test("checkExpandedConfig() names the variables of a value that does not fit, and never the value", () => {
  const written = {
    url: "${A}",
    retries: "${N}",
    on: "${ON}",
    mode: "${M}",
    items: [{ name: "n", size: "${N}" }],
  };
  const expanded = {
    url: "x",
    retries: 77,
    on: "hunter2",
    mode: "fsat",
    items: [{ name: "n", size: "many" }],
  };
  const findings = new Findings();
  checkExpandedConfig(expanded, SCHEMA, ["tools", 0, "config"], findings, written);
  assertEquals(findings.errors.map(({ path, message, hint }) => [formatPath(path), message, hint]), [
    [
      "tools[0].config.url",
      "Cannot read url: must have at least 3 characters: received the value of ${A}",
      "set A to a value that fits",
    ],
    [
      "tools[0].config.retries",
      "Cannot read retries: must be a whole number from 0 to 5: received the value of ${N}",
      "set N to a value that fits",
    ],
    [
      "tools[0].config.on",
      "Cannot read on: must be true or false: received the value of ${ON}",
      "set ON to a value that fits",
    ],
    [
      "tools[0].config.mode",
      "Cannot read mode: must be one of fast, slow, null: received the value of ${M}",
      "set M to a value that fits",
    ],
    [
      "tools[0].config.items[0].size",
      "Cannot read size: must be a whole number of at least 1: received the value of ${N}",
      "set N to a value that fits",
    ],
  ]);
});

Deno.test("checkExpandedConfig() names the unset variable of a required key", () => {
  const findings = new Findings();
  checkExpandedConfig({}, SCHEMA, ["tools", 0, "config"], findings, { url: "${URL}" });
  assertEquals(findings.errors.map(({ message, hint }) => [message, hint]), [[
    'Cannot read tools[0].config: it must have "url": received the value of ${URL}, which is not set',
    "set URL to a value that fits",
  ]]);
});

Deno.test("checkWrittenConfig() takes money as a decimal string", () => {
  const schema = { properties: { price: { type: "string", format: "decimal" } } };
  assertEquals(found({ price: "0.50" }, schema).errors, []);
  assertEquals(found({ price: "cheap" }, schema).errors, [
    'tools[0].config.price: Cannot read price: must be a decimal number as text, such as "0.50": received text',
  ]);
  assertEquals(found({ price: 0.5 }, schema).errors, [
    'tools[0].config.price: Cannot read price: must be a decimal number as text, such as "0.50": received 0.5 (write it in quotes: "0.5")',
  ]);
});

Deno.test("checkWrittenConfig() never displays text of a config", () => {
  const secret = "sk-live-0123456789";
  for (const config of [{ retries: secret }, { on: secret }, { items: secret }, { url: secret }]) {
    assertEquals(JSON.stringify(found(config)).includes(secret), false);
  }
});

/** Returns the typed value of a `${VAR}` in a field with this schema. */
function typed(text: string, schema: JsonObject): unknown {
  return typeConfig({ field: text }, { field: "${VAR}" }, { properties: { field: schema } }).field;
}

Deno.test("typeConfig() converts the text of a variable to the type of its schema", () => {
  const cases: [text: string, schema: JsonObject, value: unknown][] = [
    ["5", { type: "integer" }, 5],
    [" -1 ", { type: "integer" }, -1],
    ["0.5", { type: "number" }, 0.5],
    ["1e3", { type: "number" }, 1000],
    ["true", { type: "boolean" }, true],
    ["FALSE", { type: "boolean" }, false],
    ["5", { type: ["integer", "null"] }, 5],
    ["", { type: ["integer", "null"] }, null],
    ["null", { type: ["integer", "null"] }, null],
    ["true", { anyOf: [{ type: ["boolean", "null"] }, { type: "array", items: { type: "string" } }] }, true],
    ["2", { enum: [1, 2, 3] }, 2],
  ];
  for (const [text, schema, value] of cases) assertEquals(typed(text, schema), value, JSON.stringify(schema));
});

Deno.test("typeConfig() keeps text where text is allowed or does not fit", () => {
  const cases: [text: string, schema: JsonObject][] = [
    ["5", { type: "string" }],
    ["5", { type: ["string", "integer"] }],
    ["true", { anyOf: [{ type: "boolean" }, { type: "string" }] }],
    ["5", { enum: ["5", 5] }],
    ["5", {}],
    ["five", { type: "integer" }],
    ["0x10", { type: "integer" }],
    ["Infinity", { type: "number" }],
    ["", { type: "integer" }],
    ["yes", { type: "boolean" }],
    ["[1]", { type: "array" }],
  ];
  for (const [text, schema] of cases) assertEquals(typed(text, schema), text, JSON.stringify(schema));
});

Deno.test("typeConfig() converts inside lists, objects and anyOf, and does not change literals", () => {
  const item = { type: "object", properties: { size: { type: "integer" } } };
  const schema = {
    properties: {
      items: { type: "array", items: { anyOf: [{ type: "string" }, item] } },
      sizes: { type: "array", items: { type: "number" } },
    },
  };
  const written = { items: ["a", { size: "${A}" }, { size: "7" }], sizes: ["${A}", "8"], other: "${A}" };
  const expanded = { items: ["a", { size: "5" }, { size: "7" }], sizes: ["5", "8"], other: "5" };
  assertEquals(typeConfig(expanded, written, schema), {
    items: ["a", { size: 5 }, { size: "7" }],
    sizes: [5, "8"],
    other: "5",
  });
});

Deno.test("typeConfig() keeps a literal ${", () => {
  const schema = { properties: { n: { type: "integer" } } };
  assertEquals(typeConfig({ n: "5" }, { n: "$${N}" }, schema), { n: "5" });
});
