/**
 * Runs plans whose modules are files that a test writes, in each tier that modules can run in, one run at a
 * time.
 */
import { assertEquals } from "../assert.ts";
import { createRuntime } from "../../src/app/runtime.ts";
import type { Runtime } from "../../src/app/types.ts";
import type { Entry } from "../../src/kernel/host.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import type { Caller, Run } from "../../src/runs/types.ts";
import type { JsonObject } from "../../src/sdk/json.ts";

/** A tier, or this process. */
export const TIERS = ["inline", "process"] as const;

const OPERATOR: Caller = { name: "terminal", namespace: "x", origin: "operator" };

type Tier = (typeof TIERS)[number];

/** Result of a run. */
export interface RunResult {
  readonly run: Run;
  readonly entries: readonly Entry[];
  /** Lines that were logged meanwhile. */
  readonly logged: readonly { level: string; event: string; facts: JsonObject }[];
}

/** Logs and environment of the run under way. */
let logged: { level: string; event: string; facts: JsonObject }[] = [];
let variables: Readonly<Record<string, string>> = {};

/** The runtimes of a test file, one for each tier: the bundler and the sandboxes are started once. */
const runtimes = new Map<Tier, Runtime>();
const root = Deno.makeTempDirSync();

Deno.test.afterAll(async () => {
  for (const runtime of runtimes.values()) await runtime.close();
  await Deno.remove(root, { recursive: true });
});

function runtimeOf(tier: Tier): Runtime {
  const opened = runtimes.get(tier);
  if (opened) return opened;
  const { isolation, modules, ...base } = defaultPolicy();
  const runtime = createRuntime({
    home: new URL(`file://${root}/home/`), // of all tiers: a module is bundled once
    env: (name) => variables[name],
    log: (level, event, facts) => void logged.push({ level, event, facts }),
    policy: {
      ...base,
      isolation: {
        ...isolation,
        load_timeout_s: 120, // `deno test` checks the types of a guest's program first
      },
      modules: { ...modules, inline: tier === "inline" ? [`file://${root}/`] : [] },
    },
  });
  runtimes.set(tier, runtime);
  return runtime;
}

/** Folders by their files: the same files have the same URLs in every run, and are bundled once. */
const folders = new Map<string, string>();

async function folderOf(files: Readonly<Record<string, string>>): Promise<string> {
  const key = JSON.stringify(files);
  const known = folders.get(key);
  if (known) return known;
  const folder = await Deno.makeTempDir({ dir: root });
  for (const [name, text] of Object.entries(files)) await Deno.writeTextFile(`${folder}/${name}`, text);
  folders.set(key, folder);
  return folder;
}

/**
 * Runs a plan with files of these names, in a tier, and replays the run, which must be equal. Rejects like
 * `runs.create`.
 * @param env Variables that the plan may name.
 */
export async function runWithFiles(
  tier: Tier,
  files: Readonly<Record<string, string>>,
  parts: JsonObject,
  env: Readonly<Record<string, string>> = {},
): Promise<RunResult> {
  const base_url = `file://${await folderOf(files)}/`;
  const runtime = runtimeOf(tier);
  logged = [];
  variables = env;
  const session = { orchestrator: "loop-basic", context: "context-simple" };
  const plan = { session, providers: ["provider-mock"], ...parts };
  const handle = await runtime.runs.create({ prompt: "go", plan }, OPERATOR, { base_url });
  const run = await handle.settled("end");
  const entries = await runtime.runs.events(OPERATOR, run.id, { limit: Number.MAX_SAFE_INTEGER });
  const result = { run, entries, logged: [...logged] };
  assertEquals(await runtime.runs.replay(OPERATOR, run.id), { equal: true });
  return result;
}
