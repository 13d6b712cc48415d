/** Runs plans whose modules are files that a test writes, in each tier that modules can run in. */
import { createRuntime } from "../../src/app/runtime.ts";
import type { Entry } from "../../src/kernel/host.ts";
import { defaultPolicy } from "../../src/policy/policy.ts";
import type { Caller, Run } from "../../src/runs/types.ts";
import type { JsonObject } from "../../src/sdk/json.ts";

/** Where modules run. */
export const TIERS = ["inline", "worker", "process"] as const;

const OPERATOR: Caller = { name: "terminal", namespace: "x", origin: "operator" };

/** What came of a run. */
export interface Told {
  readonly run: Run;
  readonly entries: readonly Entry[];
}

/** Runs a plan beside files of these names, in a tier. Rejects as `runs.create` does. */
export async function runWithFiles(
  tier: (typeof TIERS)[number],
  files: Readonly<Record<string, string>>,
  parts: JsonObject,
): Promise<Told> {
  const folder = await Deno.makeTempDir();
  const base_url = `file://${folder}/`;
  const { isolation, modules, ...base } = defaultPolicy();
  const runtime = createRuntime({
    policy: {
      ...base,
      isolation: {
        ...isolation,
        load_timeout_s: 60,
        urls_from_operator: tier === "inline" ? "worker" : tier,
      },
      modules: { ...modules, inline: tier === "inline" ? [base_url] : [] },
    },
  });
  try {
    for (const [name, text] of Object.entries(files)) await Deno.writeTextFile(`${folder}/${name}`, text);
    const session = { orchestrator: "loop-basic", context: "context-simple" };
    const plan = { session, providers: ["provider-mock"], ...parts };
    const handle = await runtime.runs.create({ prompt: "go", plan }, OPERATOR, { base_url });
    const run = await handle.settled("end");
    return { run, entries: await runtime.runs.events(OPERATOR, run.id, {}) };
  } finally {
    await runtime.close();
    await Deno.remove(folder, { recursive: true });
  }
}
