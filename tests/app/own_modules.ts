/** Runs plans whose modules are files that a test writes, in each tier that modules can run in. */
import { assertEquals } from "../assert.ts";
import { createRuntime } from "../../src/app/runtime.ts";
import type { Entry } from "../../src/kernel/host.ts";
import { defaultPolicy } from "../../src/policy/policy_schema.ts";
import type { Caller, Run } from "../../src/runs/types.ts";
import type { JsonObject } from "../../src/sdk/json.ts";

/** A tier, or this process. */
export const TIERS = ["inline", "worker", "process"] as const;

const OPERATOR: Caller = { name: "terminal", namespace: "x", origin: "operator" };

/** Result of a run. */
export interface RunResult {
  readonly run: Run;
  readonly entries: readonly Entry[];
  /** Lines that were logged meanwhile. */
  readonly logged: readonly { level: string; event: string; facts: JsonObject }[];
}

/**
 * Runs a plan with files of these names, in a tier, and replays the run, which must be equal. Rejects like `runs.create`.
 * @param env Variables that the plan may name.
 */
export async function runWithFiles(
  tier: (typeof TIERS)[number],
  files: Readonly<Record<string, string>>,
  parts: JsonObject,
  env: Readonly<Record<string, string>> = {},
): Promise<RunResult> {
  const folder = await Deno.makeTempDir();
  const base_url = `file://${folder}/`;
  const { isolation, modules, ...base } = defaultPolicy();
  const logged: { level: string; event: string; facts: JsonObject }[] = [];
  const runtime = createRuntime({
    env: (name) => env[name],
    log: (level, event, facts) => void logged.push({ level, event, facts }),
    policy: {
      ...base,
      isolation: {
        ...isolation,
        load_timeout_s: 120, // `deno test` checks the types of a guest's program first
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
    const entries = await runtime.runs.events(OPERATOR, run.id, { limit: Number.MAX_SAFE_INTEGER });
    const result = { run, entries, logged: [...logged] };
    assertEquals(await runtime.runs.replay(OPERATOR, run.id), { equal: true });
    return result;
  } finally {
    await runtime.close();
    await Deno.remove(folder, { recursive: true });
  }
}
