/** Tests of the process that validates a module: timeouts and protocol errors. */
import { validateInProcess } from "../../src/app/validation/process.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { contextOf, loaderOf, specOf } from "../support/loader.ts";

const loader = loaderOf();
Deno.test.afterAll(() => loader.close());

async function outcomeOf(code: string, step_ms = 500) {
  const bundle = await loader.bundle(specOf(`data:text/javascript,${encodeURIComponent(code)}`), contextOf());
  const request = { name: "it", base_url: "file:///", allow: [], load_timeout_s: 5 };
  const options = { id: "tool-x", config: {}, structure_only: true };
  return await validateInProcess(bundle, { ...request, options }, { step_ms, env: () => ({}) });
}

Deno.test("validateInProcess() kills a module that loops forever, and reports the step", async () => {
  const [mounting, loading] = await Promise.all([
    outcomeOf("export async function mount(a, b) { for (;;); }"),
    outcomeOf("for (;;); export async function mount(a, b) {}"),
  ]);
  assert(mounting.kind === "failed" && loading.kind === "failed");
  assertMatch(mounting.check.message, /^mount\(\) timed out after 0.5 s of work; its process was killed$/);
  assertEquals([mounting.check.name, mounting.check.severity], ["protocol_compliance", "error"]);
  assertMatch(loading.check.message, /^import timed out after 0.5 s/);
  assertEquals(loading.check.name, "module_importable");
});

Deno.test("validateInProcess() treats invalid bytes as the end of the process", async () => {
  const outcome = await outcomeOf(
    "export async function mount(a, b) { Deno.stdout.writeSync(new Uint8Array(64).fill(255)); for (;;); }",
  );
  assert(outcome.kind === "failed");
  assertMatch(outcome.check.message, /process exited .* during mount\(\)/);
});

Deno.test("validateInProcess() limits the memory of a module", async () => {
  const outcome = await outcomeOf(
    "export async function mount(a, b) { const kept = []; for (let i = 0; i < 40; i++) kept.push(new Uint8Array(1e8)); }",
    60_000,
  );
  // V8 throws an error, or ends the process
  assertMatch(JSON.stringify(outcome), /process exited .* during mount\(\)|Array buffer allocation failed/);
});
