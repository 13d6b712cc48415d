/** A module from a file is mounted with a config that its schema accepts, with defaults, in every tier. */
import { refusal } from "../support/plans.ts";
import { assertEquals, assertMatch, assertRejects } from "../assert.ts";
import { runWithFiles, TIERS } from "../support/own_modules.ts";

const SCHEMA = {
  type: "object",
  properties: {
    max_dice: { type: "integer", minimum: 1, default: 10 },
    names: { type: "array", items: { type: "string" }, default: ["a"] },
    style: { type: "object", properties: { colour: { enum: ["red", "blue"], default: "red" } } },
  },
};

const DICE = `
export const module = { id: "tool-dice", type: "tool", version: "1.2.3", config_schema: ${
  JSON.stringify(SCHEMA)
} };
export async function mount(coordinator, config) {
  await coordinator.hooks.emit("tool-dice:config", { config });
  await coordinator.mount("tools", { name: "dice", description: "Rolls", execute: () => "6" });
}`;

const tools = (config?: unknown) => ({
  tools: [{ module: "tool-dice", source: "./dice.js", ...(config === undefined ? {} : { config }) }],
});

for (const tier of TIERS) {
  Deno.test(`the defaults of a schema are filled in before mount: ${tier}`, async () => {
    for (
      const [config, expected] of [
        [undefined, { max_dice: 10, names: ["a"] }],
        [{ max_dice: 3, style: {} }, { max_dice: 3, names: ["a"], style: { colour: "red" } }],
        [{ names: [], style: { colour: "blue" } }, { max_dice: 10, names: [], style: { colour: "blue" } }],
      ]
    ) {
      const { run, entries } = await runWithFiles(tier, { "dice.js": DICE }, tools(config));
      const result = entries.find(({ event }) => event === "tool-dice:config")?.data.config;
      assertEquals([run.status, result, run.isolation["tool-dice"], run.warnings], [
        "completed",
        expected,
        tier,
        [],
      ]);
    }
  });

  Deno.test(`a config that does not match the schema refuses the plan, with its path: ${tier}`, async () => {
    for (
      const [config, path, message] of [
        [
          { max_dice: "many" },
          "tools[0].config.max_dice",
          "Cannot read max_dice: must be a whole number of at least 1: received text",
        ],
        [
          { max_dice: 0 },
          "tools[0].config.max_dice",
          "Cannot read max_dice: must be a whole number of at least 1: received 0",
        ],
        [{ names: ["a", 5] }, "tools[0].config.names[1]", "Cannot read entry 1: must be text: received 5"],
        [
          { max_dicee: 5 },
          "tools[0].config.max_dicee",
          'Cannot use key "max_dicee": tools[0].config has no such key',
        ],
      ] as const
    ) {
      const error = await refusal(() => runWithFiles(tier, { "dice.js": DICE }, tools(config)));
      assertEquals([error.code, error.details.map((one) => [one.path, one.message])], ["plan_invalid", [[
        path,
        message,
      ]]]);
    }
  });

  Deno.test(`a key that is not in the schema is a warning of the run: ${tier}`, async () => {
    const { run } = await runWithFiles(tier, { "dice.js": DICE }, tools({ sound: true }));
    assertEquals(run.warnings.map(({ code, message }) => [code, message.split(";")[0]]), [
      ["unknown_key", 'Cannot use key "sound": tools[0].config has no such key'],
    ]);
  });

  Deno.test(`a hook that declares itself a gate and cannot be loaded fails the run: ${tier}`, async () => {
    const files = {
      "gate.js": `export const module = { id: "hooks-gate", type: "hook", gates: true };
        throw new Error("broken");
        export function mount() {}`,
    };
    const hook = { module: "hooks-gate", source: "./gate.js" };
    const error = await refusal(() => runWithFiles(tier, files, { hooks: [hook] }));
    assertEquals([error.code, error.details.map(({ path }) => path)], ["module_load_failed", ["hooks[0]"]]);
    const { run } = await runWithFiles(tier, files, { hooks: [{ ...hook, required: false }] });
    assertEquals([run.status, run.warnings.map(({ code }) => code)], ["completed", ["module_load_failed"]]);
  });

  Deno.test(`a hook that registered its gate and then failed fails the run: ${tier}`, async () => {
    const files = {
      "gate.js": `export function mount({ hooks }) {
        hooks.register("tool:pre", () => null);
        throw new Error("broken");
      }`,
    };
    const error = await refusal(() =>
      runWithFiles(tier, files, { hooks: [{ module: "hooks-gate", source: "./gate.js" }] })
    );
    assertEquals([error.code, error.details.map(({ path }) => path)], ["module_load_failed", ["hooks[0]"]]);
  });

  Deno.test(`module:mounted has the version and description that the module exports: ${tier}`, async () => {
    const files = {
      "own.js": `export const module = { id: "tool-own", type: "tool", name: "Own", version: "1.2.3" };
        export const mount = (coordinator) => coordinator.mount("tools", { name: "own", description: "d", execute() {} });`,
      "metadata.js": `export async function mount(coordinator) {
        await coordinator.mount("tools", { name: "metadata", description: "d", execute() {} });
        return { name: "tool-metadata", version: "0.1.0", provides: ["metadata"] };
      }`,
      "mute.js":
        `export const mount = (coordinator) => coordinator.mount("tools", { name: "m", description: "d", execute() {} });`,
    };
    const tools = ["own", "metadata", "mute"].map((name) => ({
      module: `tool-${name}`,
      source: `./${name}.js`,
    }));
    const { entries } = await runWithFiles(tier, files, { tools });
    const result = entries.filter(({ event }) => event === "module:mounted").map(({ data }) => {
      const { module_id, name = null, version = null, provides = null } = data;
      return [module_id, name, version, provides];
    });
    assertEquals(result, [
      ["loop-basic", null, null, null],
      ["context-simple", null, null, null],
      ["provider-mock", null, null, null],
      ["tool-own", "Own", "1.2.3", null],
      ["tool-metadata", "tool-metadata", "0.1.0", ["metadata"]],
      ["tool-mute", null, null, null],
    ]);
  });

  Deno.test(`a module of another contract is not mounted: ${tier}`, async () => {
    const files = {
      "new.js": `export const module = { id: "tool-new", contract: 2 };\nexport function mount() {}`,
    };
    const { run } = await runWithFiles(tier, files, { tools: [{ module: "tool-new", source: "./new.js" }] });
    assertEquals(run.warnings, [{
      code: "module_contract_unsupported",
      message:
        'Module "tool-new" was skipped: module.contract must be 1, the version of the module contract of this runtime: received 2',
    }]);
  });
}

Deno.test("a schema that is too large for its config is an error instead of blocking the process", async () => {
  const source = `
const words = Array.from({ length: 100_000 }, (_, at) => "word " + at);
export const module = {
  id: "tool-dice",
  type: "tool",
  config_schema: { properties: { words: { items: { enum: words } } } },
};
export const mount = () => {};`;
  const words = Array.from({ length: 2_000 }, (_, at) => `none ${at}`);
  const { message } = await assertRejects(() =>
    runWithFiles("process", { "dice.js": source }, tools({ words }))
  );
  assertMatch(
    message,
    /: Cannot check its config: config_schema has \d+ characters, too many/,
  );
});
