/**
 * A module that replaces built-ins of its isolate is served all the same: what carries its messages has
 * built-ins of its own.
 */
import { createTestCoordinator } from "../../../src/testing/coordinator.ts";
import type { Tool } from "../../../src/sdk/types.ts";
import { errorMessage } from "../../../src/sdk/errors.ts";
import { assertEquals, assertMatch, assertRejects } from "../../assert.ts";
import { someOf } from "../../support/cases.ts";
import { Lab } from "../../support/sandbox.ts";

/** Built-ins that are replaced, by their holder; what they are replaced with is {@link PATCHES}. */
const BUILT_INS: Readonly<Record<string, readonly string[]>> = {
  "Map.prototype": ["get", "set", "has", "delete", "keys", "values", "entries", "forEach", "clear"],
  "WeakMap.prototype": ["get", "set", "has", "delete"],
  "Set.prototype": ["has", "add", "delete", "forEach", "values"],
  "Array.prototype": [
    ...[
      "push",
      "pop",
      "shift",
      "splice",
      "slice",
      "map",
      "filter",
      "find",
      "some",
      "every",
      "includes",
      "join",
    ],
    ...["forEach", "concat", "entries", "values", "keys", "reduce", "flatMap", "indexOf", "sort", "at"],
  ],
  "Promise.prototype": ["then", "catch", "finally"],
  "Promise": ["withResolvers", "resolve", "reject", "all"],
  "Object": ["keys", "entries", "fromEntries", "assign", "freeze", "hasOwn", "create", "getOwnPropertyNames"],
  "Reflect": ["get", "ownKeys", "apply"],
  "JSON": ["stringify", "parse"],
  "String.prototype": ["slice", "startsWith", "endsWith", "split", "includes"],
  "Function.prototype": ["bind", "apply", "toString"],
  "globalThis": ["Map", "WeakMap", "Set", "AbortController", "Proxy"],
};

/** What a built-in is replaced with, given what it was. */
const PATCHES: Readonly<Record<string, string>> = {
  "a function that does as before": `function (...args) { return was.apply(this, args) }`,
  "a function that does nothing": `function () {}`,
  "a function that throws": `function () { throw new TypeError("replaced") }`,
};

/** Replaced as well, in one way each. */
const OTHERS: Readonly<Record<string, string>> = {
  "toJSON of every object": `Object.prototype.toJSON = () => "replaced"; delete Object.prototype.missing;`,
  "toJSON of every list": `Array.prototype.toJSON = () => "replaced";`,
  "the iterator of lists":
    `Array.prototype[Symbol.iterator] = function () { throw new TypeError("replaced") };`,
  "what lists yield":
    `Object.getPrototypeOf([][Symbol.iterator]()).next = function () { return { done: true, value: undefined } };`,
  "the names of built-ins":
    `for (const name of ["Map", "Set", "JSON", "Promise", "Object", "Array", "Reflect"]) globalThis[name] = undefined;`,
};

/** A module whose own code needs none of them. */
const MODULE = `
export const mount = async (coordinator, config) => {
  await coordinator.hooks.emit("custom:mounted", { config });
  await coordinator.mount("tools", { name: "echo", description: "Gives back", input_schema: { type: "object" },
    async execute(input) {
      coordinator.session_state.seen = input.n;
      const emission = await coordinator.hooks.emit("custom:asked", { n: input.n });
      if (input.n === 2) { const error = new RangeError("two is too many"); error.code = "E_TWO"; throw error; }
      return { n: input.n, action: emission.action };
    } });
};`;

/** Returns code that replaces all built-ins of these holders in one way. */
function patchesOf(holders: readonly string[], how: string): string {
  const ways = holders.filter((holder) => holder !== "globalThis" || how === "a function that throws");
  return ways.flatMap((holder) =>
    BUILT_INS[holder]!.map((name) =>
      `{ const was = ${holder}.${name}; ${holder}.${name} = ${PATCHES[how]}; }\n`
    )
  ).join("");
}

/** Modules by what they replace: the built-ins of one holder, and those of all. */
function patchedModules(): Map<string, string> {
  const modules = new Map<string, string>();
  const holders = Object.keys(BUILT_INS);
  for (const group of [...holders.map((holder) => [holder]), holders]) {
    for (const how of Object.keys(PATCHES)) {
      const patches = patchesOf(group, how);
      if (patches !== "") modules.set(`built-ins of ${group}: ${how}`, patches + MODULE);
    }
  }
  for (const [what, code] of Object.entries(OTHERS)) modules.set(what, code + MODULE);
  return modules;
}

/** Resolves to what a module came to that is mounted and called twice. */
async function outcomeOf(lab: Lab, code: string): Promise<unknown> {
  try {
    const module = await lab.open(code, { limits: { load_timeout_s: 20 } });
    const coordinator = createTestCoordinator();
    await module.mount!(coordinator, { list: [1, { a: null }] });
    const tool: Tool | undefined = coordinator.tools.echo;
    const answer = await tool?.execute({ n: 1 });
    const failure = await Promise.resolve(tool?.execute({ n: 2 })).catch(({ name, message, code }) => ({
      name,
      message,
      code,
    }));
    return { answer, failure, seen: coordinator.session_state.seen };
  } catch (error) {
    return String(error);
  } finally {
    await lab.end();
  }
}

const WHOLE = {
  answer: { success: true, output: { n: 1, action: "continue" }, error: null },
  failure: { name: "RangeError", message: "two is too many", code: "E_TWO" },
  seen: 2,
};

Deno.test("a module that replaces any built-in is mounted and served", async () => {
  await using lab = new Lab();
  const wrong: [string, unknown][] = [];
  for (const [what, code] of someOf([...patchedModules()], 8)) {
    const outcome = await outcomeOf(lab, code);
    if (JSON.stringify(outcome) !== JSON.stringify(WHOLE)) wrong.push([what, outcome]);
  }
  assertEquals(wrong, []);
});

Deno.test("a module that replaces what Deno's own wire needs is refused at once, with the reason", async () => {
  await using lab = new Lab();
  const code = `Function.prototype.call = function () {};${MODULE}`;
  const error = await assertRejects(() => lab.open(code), Error);
  assertMatch(errorMessage(error), /Cannot assign to read only property 'call'/);
});
