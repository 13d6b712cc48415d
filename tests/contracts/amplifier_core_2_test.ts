/**
 * Contracts of Amplifier: what its package `amplifier-core` 2 does with each case of a table, and what Preamp
 * does. `run.py` of `tests/fixtures/amplifier_core_2` makes the table; where Python has the package, it is
 * made again.
 */
import { type HookHandler, type JsonObject, ModelInfo, shownResult, ToolResult } from "preamp";
import { EventRecorder } from "preamp/testing";
import { outsideOfCalls } from "../../src/sdk/request_ids.ts";
import { assert, assertEquals, assertThrows } from "../assert.ts";

interface Case {
  readonly given: unknown;
  readonly got?: unknown;
  readonly refused?: true;
}

const FOLDER = new URL("../fixtures/amplifier_core_2/", import.meta.url);
const text = await Deno.readTextFile(new URL("cases.json", FOLDER));
const table: Readonly<Record<string, readonly Case[]>> = JSON.parse(text);

const PACKAGE = "amplifier-core 2.0.2";

/** Returns whether Python has the version of the package that made the table. */
async function hasPackage(): Promise<boolean> {
  const print = "from importlib.metadata import version; print('amplifier-core', version('amplifier-core'))";
  const answer = await new Deno.Command("python3", { args: ["-c", print], stderr: "null" }).output().catch(
    () => null,
  );
  return answer !== null && new TextDecoder().decode(answer.stdout).trim() === PACKAGE;
}

Deno.test({
  name: `the table is what ${PACKAGE} does`,
  ignore: !await hasPackage(),
  async fn() {
    const child = new Deno.Command("python3", {
      args: [new URL("run.py", FOLDER).pathname],
      stdin: "piped",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode(text));
    await writer.close();
    assertEquals(JSON.parse(new TextDecoder().decode((await child.output()).stdout)), table);
  },
});

/** Asserts that each case of a part of the table gives the same, or is refused as a `TypeError`. */
async function same(part: string, run: (given: never) => unknown): Promise<void> {
  const cases = table[part]!;
  assert(cases.length > 0);
  for (const { given, got, refused } of cases) {
    if (refused) assertThrows(() => run(given as never), TypeError, "Cannot make a ");
    else assertEquals([given, JSON.parse(JSON.stringify(await run(given as never)))], [given, got]);
  }
}

Deno.test("ToolResult() has the fields, the text and the form for hooks of the package", () =>
  same("tool_result", (given: JsonObject) => {
    const result = ToolResult(given);
    const { output } = result;
    const text = result.getSerializedOutput();
    // Python writes a space behind commas and colons
    const spaced = typeof output === "object" && output !== null ? text.replace(/([,:])/g, "$1 ") : text;
    return { fields: result, text: spaced, hooks: shownResult(result) };
  }));

Deno.test("emit() merges the results of handlers as the package does", () =>
  same("hook_results", async (given: JsonObject[]) => {
    const hooks = new EventRecorder();
    for (const [priority, result] of given.entries()) {
      const handler = () => result as ReturnType<HookHandler>;
      // the package has no gates that fail closed
      hooks.register("provider:request", handler, { priority, name: `h${priority}`, fail_closed: false });
    }
    const { action, context_injection, context_injection_role, ephemeral, context_injections } = await hooks
      .emit(
        "provider:request",
      );
    return { action, context_injection, context_injection_role, ephemeral, context_injections };
  }));

Deno.test("events of a model call have the id of the call where those of the package have it", () =>
  same("request_ids", async (given: string[]) => {
    const hooks = new EventRecorder();
    await outsideOfCalls(async () => { // a task of Python's
      for (const event of given) await hooks.emit(event);
    });
    const numbers = new Map<unknown, number | null>([[undefined, null]]);
    return hooks.getEvents().map(([, { request_id }]) => {
      if (!numbers.has(request_id)) numbers.set(request_id, numbers.size);
      return numbers.get(request_id);
    });
  }));

Deno.test("ModelInfo() takes the pricing that the package takes", () =>
  same("pricing", (given: never) => {
    const info = ModelInfo({ id: "m", context_window: 1, max_output_tokens: 1, pricing: given });
    const unknown = { cache_read_per_million: null, cache_write_per_million: null };
    return info.pricing ? { ...unknown, ...info.pricing } : null;
  }));
