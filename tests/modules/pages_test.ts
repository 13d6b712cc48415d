/** Checks every plan in the READMEs of the built-in modules, and runs it unless it needs a real model. */
import { BUILTIN_IDS } from "../../src/app/module_table.ts";
import { createRuntime } from "../../src/app/runtime.ts";
import { parseDocument } from "../../src/plan/parse/parse.ts";
import type { Caller } from "../../src/runs/types.ts";
import { errorCode, errorMessage } from "../../src/sdk/errors.ts";
import { isObject, type JsonObject } from "../../src/sdk/json.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { VENDORS } from "./providers/fake_vendor.ts";

const FOLDER = new URL("../../modules/", import.meta.url);
const OPERATOR: Caller = { name: "cli", namespace: "test", origin: "operator" };

/** Folders that the READMEs use as examples. */
const FOLDERS = /\/srv\/agent|\/var\/log\/preamp/g;

/** Defaults for parts of a plan that a README omits. */
const REST: JsonObject = {
  session: { orchestrator: "loop-basic", context: "context-simple" },
  providers: ["provider-mock"],
};

/** Returns the YAML blocks of a README. */
async function blocksOf(id: string): Promise<string[]> {
  const page = await Deno.readTextFile(new URL(`${id}/README.md`, FOLDER));
  return [...page.matchAll(/^```yaml\n(.*?)^```/gms)].map(([, text]) => text!);
}

/** Returns a block as a complete plan. */
async function planOf(block: string): Promise<JsonObject> {
  const { data } = await parseDocument(block, { label: "the README" });
  const session = isObject(data.session) ? data.session : {};
  return { ...REST, ...data, session: { ...REST.session as JsonObject, ...session } };
}

/** Modules whose plans reach hosts that a test does not: plans of their own in plans/ are run. */
const NETWORKED: ReadonlySet<string> = new Set(["tool-mcp", "tool-web"]);

/** Asserts that a plan was refused only because its provider has no key here. */
function assertNeedsKey(error: unknown): void {
  assertEquals(errorCode(error), "module_load_failed");
  assertMatch(errorMessage(error), /Cannot use provider-\S+ without a key: set the variable [A-Z_]+/);
}

for await (const { name: id, isDirectory } of Deno.readDir(FOLDER)) {
  if (!isDirectory || !BUILTIN_IDS.has(id)) continue;
  for (const [index, block] of (await blocksOf(id)).entries()) {
    const runs = VENDORS[id] === undefined && !NETWORKED.has(id);
    const title = `plan ${index + 1}, is valid without warnings${runs ? " and runs" : ""}`;
    Deno.test(`modules/${id}/README.md, ${title}`, async () => {
      const folder = await Deno.realPath(await Deno.makeTempDir());
      // a search engine's key is a variable in its README; nothing is searched here
      const runtime = createRuntime({
        env: (name) => ["BRAVE_API_KEY", "DOCS_TOKEN"].includes(name) ? "key-of-the-test" : undefined,
      });
      const options = { base_url: `file://${folder}/` };
      try {
        const plan = JSON.parse(JSON.stringify(await planOf(block)).replaceAll(FOLDERS, folder));
        for (const name of ["tone.md", "facts.md"]) {
          await Deno.writeTextFile(`${folder}/${name}`, "Be brief.");
        }
        const { errors, warnings } = await runtime.plans.check({ plan }, OPERATOR, options);
        assertEquals([errors, warnings], [[], []]);
        if (!runs) return;
        const creating = runtime.runs.create({ plan, prompt: "Hello" }, OPERATOR, options);
        const started = await creating.catch((error) => ({ error }));
        if ("error" in started) return assertNeedsKey(started.error);
        const run = await started.settled("end");
        assertEquals([run.status, run.error], ["completed", null]);
        assert(run.output_text);
      } finally {
        await runtime.close();
        await Deno.remove(folder, { recursive: true });
      }
    });
  }
}
