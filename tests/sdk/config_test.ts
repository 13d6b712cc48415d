import { assertEquals, assertStrictEquals, assertThrows } from "../assert.ts";
import { PreampError, readConfig, type RefuseConfig } from "../../src/sdk/mod.ts";
import type { JsonObject } from "../../src/sdk/json.ts";

const SCHEMA: JsonObject = {
  type: "object",
  required: ["url"],
  properties: {
    url: { type: "string", minLength: 1 },
    retries: { type: "integer", minimum: 0, default: 2 },
    mode: { enum: ["fast", "slow"], default: "fast" },
    cap: { type: ["integer", "null"], default: 10 },
    tags: { type: "array", items: { type: "string" }, default: ["a"] },
    nested: { type: "object", properties: { on: { type: "boolean", default: true } } },
    steps: {
      type: "array",
      items: {
        anyOf: [{ type: "string" }, {
          type: "object",
          required: ["name"],
          properties: { name: { type: "string" }, size: { type: "integer", default: 1 } },
        }],
      },
    },
  },
};

function refused(config: unknown, check?: (config: JsonObject, refuse: RefuseConfig) => void): PreampError {
  return assertThrows(() => readConfig(SCHEMA, config as JsonObject, check), PreampError) as PreampError;
}

Deno.test("readConfig() fills in defaults at every depth and changes nothing", () => {
  const config = { url: "u", cap: null, nested: {}, steps: ["s", { name: "n" }], colour: 1 };
  const before = structuredClone(config);
  assertEquals(readConfig(SCHEMA, config), {
    url: "u",
    retries: 2,
    mode: "fast",
    cap: null,
    tags: ["a"],
    nested: { on: true },
    steps: ["s", { name: "n", size: 1 }],
    colour: 1,
  });
  assertEquals(config, before);
});

Deno.test("readConfig() takes undefined as a missing key, and does not share its defaults", () => {
  const [first, second] = [1, 2].map(() =>
    readConfig<{ tags: string[] }>(SCHEMA, { url: "u", tags: undefined })
  );
  assertEquals([first!.tags, second!.tags], [["a"], ["a"]]);
  assertEquals(first!.tags === second!.tags, false);
});

Deno.test("readConfig() takes the defaults of the alternative that a value fits", () => {
  const on = (kind: string, size: number) => ({
    type: "object",
    required: ["kind"],
    properties: { kind: { enum: [kind] }, size: { type: "integer", default: size } },
  });
  const schema = { type: "object", properties: { store: { anyOf: [on("disk", 1), on("memory", 2)] } } };
  assertEquals(readConfig(schema, { store: { kind: "memory" } }), { store: { kind: "memory", size: 2 } });
});

Deno.test("readConfig() keeps values that the schema does not describe as they are", () => {
  const fetch = () => {};
  assertStrictEquals(readConfig<{ fetch: unknown }>(SCHEMA, { url: "u", fetch }).fetch, fetch);
});

Deno.test("readConfig() reports every problem with its path, and the nearest known key", () => {
  const error = refused({ retrys: 1, mode: "fsat", steps: [{ size: "x" }], nested: { on: "yes" } });
  assertEquals([error.code, error.message], [
    "module_invalid",
    'Cannot use key "retrys": config has no such key (did you mean "retries"?); and 5 more',
  ]);
  assertEquals(error.details, [
    {
      path: "config.retrys",
      message: 'Cannot use key "retrys": config has no such key',
      hint: 'did you mean "retries"?',
    },
    { path: "config", message: 'Cannot read config: it must have "url"', hint: "add url" },
    {
      path: "config.mode",
      message: 'Cannot read config.mode: must be one of fast, slow: received "fsat"',
      hint: 'did you mean "fast"?',
    },
    {
      path: "config.nested.on",
      message: "Cannot read config.nested.on: must be true or false: received text",
    },
    {
      path: "config.steps[0]",
      message: 'Cannot read config.steps[0]: it must have "name"',
      hint: "add name",
    },
    {
      path: "config.steps[0].size",
      message: "Cannot read config.steps[0].size: must be a whole number: received text",
    },
  ]);
});

Deno.test("readConfig() refuses a config that is not an object", () => {
  assertEquals(refused(7).message, "Cannot read config: must be an object: received 7");
});

Deno.test("readConfig() never displays text of a config", () => {
  const secret = "sk-live-0123456789";
  const error = refused({ url: "u", retries: secret, tags: secret, nested: { on: secret } });
  assertEquals(error.details.length, 3);
  assertEquals(JSON.stringify([error.message, error.details]).includes(secret), false);
});

Deno.test("readConfig() calls check with the complete config, and only when it fits the schema", () => {
  const seen: JsonObject[] = [];
  const check = (config: JsonObject, refuse: RefuseConfig) => {
    seen.push(config);
    if (config.mode === "slow") {
      refuse(["mode"], "must be fast with retries", "set retries: 0");
      refuse(["steps", 0], "comes too early");
    }
  };
  const settings = readConfig<JsonObject>(SCHEMA, { url: "u" }, check);
  assertEquals([seen.length, seen[0] === settings, settings.retries], [1, true, 2]);
  refused({ url: 1 }, check);
  assertEquals(seen.length, 1);
  const error = refused({ url: "u", mode: "slow" }, check);
  assertEquals([error.message, error.details], [
    "Cannot read config.mode: must be fast with retries (set retries: 0); and 1 more",
    [
      {
        path: "config.mode",
        message: "Cannot read config.mode: must be fast with retries",
        hint: "set retries: 0",
      },
      { path: "config.steps[0]", message: "Cannot read config.steps[0]: comes too early" },
    ],
  ]);
});
