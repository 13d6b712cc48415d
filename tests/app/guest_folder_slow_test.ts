/** Tests of a module in a process: its relative paths, and what its refusals advise. */
import { pathToFileURL } from "node:url";
import type { JsonObject } from "preamp";
import { createRuntime } from "../../src/app/runtime.ts";
import { assertEquals, assertStringIncludes } from "../assert.ts";
import { temporaryFolder } from "../support/folder.ts";

/** Runs a tool that reads a file; resolves to its result, or the message of its error. */
async function readIn(folder: string, path: string, permissions: JsonObject): Promise<string> {
  const code = `export const module = { id: "tool-look", type: "tool", version: "1.0.0" };
    export async function mount(coordinator) {
      await coordinator.mount("tools", {
        name: "look", description: "Looks.", input_schema: { type: "object", properties: {} },
        execute: async () => await Deno.readTextFile(${JSON.stringify(path)}),
      });
    }`;
  await using runtime = createRuntime();
  const caller = { namespace: "test", name: "test", origin: "operator" } as const;
  const handle = await runtime.runs.create(
    {
      prompt: "Look",
      plan: {
        session: { orchestrator: "loop-basic", context: "context-simple" },
        providers: [{
          module: "provider-mock",
          config: { responses: [{ tool_calls: [{ name: "look", arguments: {} }] }, { text: "done" }] },
        }],
        tools: [{
          module: "tool-look",
          source: `data:text/javascript,${encodeURIComponent(code)}`,
          permissions,
        }],
      },
    },
    caller,
    { base_url: `${pathToFileURL(`${folder}/plan.yaml`)}` },
  );
  await handle.settled("end");
  const entries = await Array.fromAsync(runtime.runs.follow(caller, handle.id, {}));
  for (const { event, data } of entries.flat()) {
    if (event === "tool:post") return String((data.result as { output?: unknown }).output);
    if (event === "tool:error") return String((data.error as { msg?: unknown }).msg);
  }
  throw new Error(`The tool was not called: ${JSON.stringify(handle.current())}`);
}

Deno.test("a module's own relative paths and those of its permissions start at the plan's folder", async () => {
  await using folder = await temporaryFolder();
  await Deno.mkdir(`${folder.path}/data`);
  await Deno.writeTextFile(`${folder.path}/data/a`, "of the plan");
  assertEquals(await readIn(folder.path, "./data/a", { read: ["./data"] }), "of the plan");
});

Deno.test("a refusal advises the entry that is missing, and never one that the plan has", async () => {
  await using folder = await temporaryFolder();
  await Deno.mkdir(`${folder.path}/real`);
  await Deno.writeTextFile(`${folder.path}/real/a`, "x");
  await Deno.symlink(`${folder.path}/real`, `${folder.path}/link`);
  const missing = await readIn(folder.path, "./real/a", { read: ["./other"] });
  assertStringIncludes(missing, 'whose entry needs permissions: {read: ["./real/a"]}');
  const there = await readIn(folder.path, "./link/a", { read: ["./link"] });
  assertStringIncludes(there, 'the plan grants it to module "tool-look", but');
  assertStringIncludes(there, "see preamp plan explain");
});
